"""What every command that speaks Kubernetes says where it cannot."""

from __future__ import annotations


def needed() -> None:
    """Whether what that takes is installed."""
    from clew.errors import ClewError

    try:
        import lightkube  # noqa: F401 - it is there, and the rest with it
    except ImportError as error:
        raise ClewError(
            f"{error.name} is not installed", hint="pip install 'clew[kubernetes]'"
        ) from error

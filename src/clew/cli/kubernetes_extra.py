"""The check that the optional Kubernetes packages are installed."""


def require_kubernetes() -> None:
    """Raise an error if the packages of `clew[kubernetes]` are not installed."""
    from clew.errors import ClewError

    try:
        import lightkube  # noqa: F401 - stands for all packages of the extra
    except ImportError as error:
        raise ClewError(
            f"{error.name} is not installed", hint="pip install 'clew[kubernetes]'"
        ) from error

"""Clew: run a command, and from then on know where every file came from.

    import clew

    project = clew.open()
    for execution in project.executions():
        print(execution.id, execution.command, [file.path for file in execution.outputs])

The names below are the whole public interface; everything else may change without notice.
They load on first use, so that `import clew` costs nothing by itself. Outside `clew.api` and
the command line nobody inside the package may import from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from clew.api import (
        Check,
        Checkout,
        CheckoutStatus,
        Edge,
        Execution,
        File,
        Lineage,
        Node,
        Outcome,
        Problem,
        Process,
        Project,
        ProjectStatus,
        Reclaimed,
        Recreated,
        Repeated,
        Restored,
        Transfer,
        Version,
        init,
        open,  # noqa: A004 (clew.open is the public name)
    )
    from clew.errors import ClewError

__all__ = [
    "Check",
    "Checkout",
    "CheckoutStatus",
    "ClewError",
    "Edge",
    "Execution",
    "File",
    "Lineage",
    "Node",
    "Outcome",
    "Problem",
    "Process",
    "Project",
    "ProjectStatus",
    "Reclaimed",
    "Recreated",
    "Repeated",
    "Restored",
    "Transfer",
    "Version",
    "__version__",
    "init",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'clew' has no attribute {name!r}")
    import importlib

    home = importlib.import_module("clew.errors" if name == "ClewError" else "clew.api")
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)

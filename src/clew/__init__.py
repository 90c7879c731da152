"""Clew: run a command, and from then on know where every file came from.

    import clew

    project = clew.open()
    for execution in project.executions():
        print(execution.id, execution.command, [file.path for file in execution.outputs])

The names below are the whole public interface; everything else may change without notice.
They load on first use, so that `import clew` costs nothing by itself. Outside `clew.api` and
the command line no module of the package may import from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from clew.api.executions import Execution, Outcome
    from clew.api.open_project import init, open  # noqa: A004 (clew.open is the public name)
    from clew.api.project import Project
    from clew.api.repeats import Repeated
    from clew.documents.executions.detail import File, Process
    from clew.documents.executions.push_pull import Transfer
    from clew.documents.files.checkouts import Checkout, CheckoutStatus
    from clew.documents.files.recreations import Recreated
    from clew.documents.files.versions import Restored, Version
    from clew.documents.lineage.lineage import Edge, Lineage, Node
    from clew.documents.project.maintenance import Check, Problem, Reclaimed
    from clew.documents.project.status import ProjectStatus
    from clew.errors import ClewError
    from clew.task_placement import place

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
    "place",
]


_MODULES = {
    "clew.api.executions": ("Execution", "Outcome"),
    "clew.api.open_project": ("init", "open"),
    "clew.api.project": ("Project",),
    "clew.api.repeats": ("Repeated",),
    "clew.documents.files.checkouts": ("Checkout", "CheckoutStatus"),
    "clew.documents.executions.detail": ("File", "Process"),
    "clew.documents.lineage.lineage": ("Edge", "Lineage", "Node"),
    "clew.documents.project.maintenance": ("Check", "Problem", "Reclaimed"),
    "clew.documents.files.recreations": ("Recreated",),
    "clew.documents.project.status": ("ProjectStatus",),
    "clew.documents.executions.push_pull": ("Transfer",),
    "clew.documents.files.versions": ("Restored", "Version"),
    "clew.errors": ("ClewError",),
    "clew.task_placement": ("place",),
}


def __getattr__(name: str) -> Any:
    import importlib

    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

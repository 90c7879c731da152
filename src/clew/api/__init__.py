"""The Python interface: a project, and everything one can do with it.

    project = clew.open()                     the project of the current folder
    outcome = project.exec(["python", "train.py"], name="first")
    lineage = project.lineage("model.pkl")

`Project` is the facade the command line is built on; `records` are the frozen values it
answers with. They, and what needs the witness or the store, are loaded when they are first asked
for: a machine without a compiler can do everything but `exec`. Rooms below never import this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.local.project import Project
from clew.api.open_project import init, open  # noqa: A004 (clew.open is the public name)

if TYPE_CHECKING:
    from clew.api.results import (
        Check,
        Checkout,
        Edge,
        Execution,
        File,
        Lineage,
        Node,
        Outcome,
        Problem,
        Process,
        Reclaimed,
        Recreated,
        Repeated,
        Restored,
        Status,
        Transfer,
        Version,
    )

__all__ = [
    "Check",
    "Checkout",
    "Edge",
    "Execution",
    "File",
    "Lineage",
    "Node",
    "Outcome",
    "Problem",
    "Process",
    "Project",
    "Reclaimed",
    "Recreated",
    "Repeated",
    "Restored",
    "Status",
    "Transfer",
    "Version",
    "init",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'clew.api' has no attribute {name!r}")
    from clew.api import results

    return getattr(results, name)

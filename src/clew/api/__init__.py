"""The Python interface: a project, and everything one can do with it.

    project = clew.open()                     the project of the current folder
    outcome = project.exec(["python", "train.py"], name="first")
    lineage = project.lineage("model.pkl")

`Project` is the facade the command line is built on; `records` are the frozen values it
answers with. What needs the witness or the store is loaded when it is first asked for, so
that a machine without a compiler can do everything but `exec`. Rooms below never import this.
"""

from __future__ import annotations

from clew.api.project import Project, init, open  # noqa: A004 (clew.open is the public name)
from clew.api.records import (
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

"""The Python interface, on which the command line and the server are built.

    project             the protocols `Project` and `Pipelines`: the documented interface
    results, executions what they return, with the documents of `clew.documents`
    open_project        `clew.open` and `clew.init`
    local               the implementation for a local directory
    remote              the implementation for a server (CLEW_SERVER)
    delivery            sends executions that were recorded here to a server
    pipeline_artifacts  names of runs, tasks and artifacts, and the files of artifacts

It contains no SQL and no parsing of the command line. Only `server`, `cli` and Python programs
import it, never the packages below. Modules load on first use: a machine without a compiler can do
everything but `exec`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.open_project import init, open  # noqa: A004 (clew.open is the public name)
from clew.api.project import Project

if TYPE_CHECKING:
    from clew.api.results import (
        Check,
        Checkout,
        CheckoutStatus,
        Edge,
        Execution,
        File,
        Lineage,
        Node,
        Note,
        Outcome,
        Problem,
        Process,
        ProjectStatus,
        Reclaimed,
        Recreated,
        Repeated,
        Restored,
        Rule,
        Transfer,
        Version,
    )

__all__ = [
    "Check",
    "Checkout",
    "CheckoutStatus",
    "Edge",
    "Execution",
    "File",
    "Lineage",
    "Node",
    "Note",
    "Outcome",
    "Problem",
    "Process",
    "Project",
    "ProjectStatus",
    "Reclaimed",
    "Recreated",
    "Repeated",
    "Restored",
    "Rule",
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

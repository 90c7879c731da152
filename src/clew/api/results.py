"""What the interface answers with: frozen values, each a reading of one JSON document.

Every record keeps the document it was read from and gives it back with `as_json()`, so that
the command line's `--json` and the Python interface cannot drift apart. Fields that the
documents gain later are there before this module names them.

Those of executions stand in a module of their own: recording one needs no others, and they take
longer to make than all that is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clew.api.executions import Document, Execution, File, Outcome, Process, Record
from clew.documents.checkouts import Checkout, CheckoutStatus
from clew.documents.lineage import Edge, Lineage, Node
from clew.documents.maintenance import Check, Problem, Reclaimed, Rule
from clew.documents.notes import Note
from clew.documents.recreations import Recreated
from clew.documents.status import ProjectStatus
from clew.documents.versions import Restored, Version

__all__ = [
    "Check",
    "Checkout",
    "CheckoutStatus",
    "Document",
    "Edge",
    "Execution",
    "File",
    "Lineage",
    "Node",
    "Note",
    "Outcome",
    "Problem",
    "Process",
    "ProjectStatus",
    "Reclaimed",
    "Recreated",
    "Repeated",
    "Restored",
    "Rule",
    "Transfer",
    "Version",
]


@dataclass(frozen=True, kw_only=True)
class Repeated(Record):
    """What came of doing an execution again."""

    execution: Execution
    of: str
    verdict: str
    """identical, equivalent or different."""
    differences: tuple[Document, ...]
    divergence: Document | None
    """Which process diverged first, and why."""
    warnings: tuple[str, ...]
    """What could not be as it was."""

    @classmethod
    def read(cls, document: Document, execution: Execution) -> Repeated:
        return cls(
            document=document,
            execution=execution,
            of=document["of"],
            verdict=document["verdict"],
            differences=tuple(document["differences"]),
            divergence=document["divergence"],
            warnings=tuple(document["warnings"]),
        )


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """What a push or a pull did."""

    url: str
    executions: tuple[Execution, ...]
    """Those that travelled, as they are called here."""
    bytes: int
    """What was sent or fetched."""
    remarks: tuple[str, ...]
    """What a person should know: a name that was dropped, an execution that was left out."""

    def as_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "executions": [execution.as_json() for execution in self.executions],
            "bytes": self.bytes,
            "remarks": list(self.remarks),
        }

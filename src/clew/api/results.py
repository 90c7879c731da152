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
from clew.documents.lineage import Edge, Lineage, Node
from clew.documents.maintenance import Check, Problem, Reclaimed, Rule
from clew.documents.notes import Note
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
class Checkout(Record):
    """The files of an execution, laid out in a directory."""

    execution: str
    folder: str
    files: int
    missing: tuple[str, ...]
    """Files that are not there, because their bytes were not kept."""

    @classmethod
    def read(cls, document: Document) -> Checkout:
        return cls(
            document=document,
            execution=document["execution"],
            folder=document["folder"],
            files=document["files"],
            missing=tuple(found["path"] for found in document["missing"]),
        )


@dataclass(frozen=True, kw_only=True)
class CheckoutStatus(Record):
    """What was changed in a checkout; each a path below its directory."""

    execution: str
    folder: str
    modified: tuple[str, ...]
    """Other content, or another mode."""
    added: tuple[str, ...]
    deleted: tuple[str, ...]

    @classmethod
    def read(cls, document: Document) -> CheckoutStatus:
        def paths(key: str) -> tuple[str, ...]:
            return tuple(found["path"] for found in document[key])

        return cls(
            document=document,
            execution=document["execution"],
            folder=document["folder"],
            modified=paths("modified"),
            added=paths("added"),
            deleted=paths("deleted"),
        )

    @property
    def clean(self) -> bool:
        return not (self.modified or self.added or self.deleted)


@dataclass(frozen=True, kw_only=True)
class Recreated(Record):
    """What making a file again took, or would take."""

    version: str
    path: str
    digest: str
    size: int
    replaces: str | None
    loses: bool
    """As of a restore."""
    runs: tuple[Document, ...]
    """The executions that are run again, in order: `{execution, command, makes, copies, as}`."""
    taken: tuple[str, ...]
    """Files that were not stored, and are taken from disk."""
    unpacked: tuple[Document, ...]
    """Files that are taken from stored archives: `{archive, member}`."""
    verdict: str
    """identical; or different: then nothing was put anywhere."""
    differences: tuple[Document, ...]

    @classmethod
    def read(cls, document: Document) -> Recreated:
        return cls(
            document=document,
            version=document["version"],
            path=document["path"],
            digest=document["digest"],
            size=document["size"],
            replaces=document["replaces"],
            loses=document["loses"],
            runs=tuple(document["runs"]),
            taken=tuple(document["taken"]),
            unpacked=tuple(document["unpacked"]),
            verdict=document["verdict"],
            differences=tuple(document["differences"]),
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

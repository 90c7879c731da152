"""Repeats and commits: the new execution, compared with the one that it repeats."""

from msgspec import UNSET, UnsetType, field

from clew.documents.checkouts import Changes
from clew.documents.differences import Difference, Divergence, Verdict
from clew.documents.document import Document
from clew.documents.executions import Execution
from clew.documents.ids import ExecutionId, RunId, TaskId


class RanProgram(Document, frozen=True, kw_only=True):
    command: tuple[str, ...]
    why: str


class ReusedProgram(Document, frozen=True, kw_only=True):
    """A program that was not run."""

    command: tuple[str, ...]
    source: str = field(name="from")
    """The process whose result was taken."""


class Repeated(Document, frozen=True, kw_only=True):
    """What came of running an execution again."""

    execution: Execution
    of: ExecutionId
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    divergence: Divergence | None = None
    """Which process diverged first, and why."""
    ran: tuple[RanProgram, ...] = ()
    reused: tuple[ReusedProgram, ...] = ()
    warnings: tuple[str, ...] = ()
    """What could not be as it was."""
    changes: Changes | UnsetType = UNSET
    """Of a commit: what was changed in the checkout."""


class RepeatedTask(Repeated, frozen=True, kw_only=True):
    task: TaskId


class RepeatedRun(Document, frozen=True, kw_only=True):
    """What came of repeating every task of a pipeline run."""

    of: RunId | None
    verdict: Verdict
    """The worst of all tasks."""
    tasks: tuple[RepeatedTask, ...]

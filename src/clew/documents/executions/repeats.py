"""Repeats and commits: the new execution, compared with the one that it repeats."""

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType, field

from clew.documents.comparisons.differences import Difference, Divergence, Verdict
from clew.documents.document import Document
from clew.documents.executions.execution_list import Execution
from clew.documents.files.checkouts import Changes
from clew.documents.ids import ExecutionId, RunId, TaskId, Uid


class RanProgram(Document, frozen=True, kw_only=True):
    command: tuple[str, ...]
    why: str


class ReusedProgram(Document, frozen=True, kw_only=True):
    """A program that was not run."""

    command: tuple[str, ...]
    source: str = field(name="from")
    """The process whose result was taken."""


class Repeated(Document, frozen=True, kw_only=True):
    """The result of running an execution again."""

    execution: Execution
    of: ExecutionId
    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    divergence: Divergence | None = None
    """The process that diverged first, and why."""
    ran: tuple[RanProgram, ...] = ()
    reused: tuple[ReusedProgram, ...] = ()
    warnings: tuple[str, ...] = ()
    """What could not be reproduced."""
    changes: Changes | UnsetType = UNSET
    """The changes in the checkout, if this is a commit."""


class RepeatedTask(Repeated, frozen=True, kw_only=True):
    task: TaskId


class RepeatedRun(Document, frozen=True, kw_only=True):
    """The result of repeating every task of a pipeline run."""

    of: RunId | None
    verdict: Verdict
    """The worst of all tasks."""
    tasks: tuple[RepeatedTask, ...]


RepeatState = Literal["queued", "running", "done", "failed", "canceled"]


class RepeatOptions(Document, frozen=True, kw_only=True):
    """How an execution is repeated."""

    parameters: dict[str, str] = {}
    """The words that replace words of the command, by position."""
    incremental: bool = False
    network: bool = False
    gpu: bool = False


class RepeatRequest(Document, frozen=True, kw_only=True):
    """A repeat that a server was asked for, or that a command performed."""

    id: Uid
    """Also the uid of the new execution, if one execution is repeated."""
    target: str
    """The execution or pipeline run that is repeated."""
    target_uid: Uid
    state: RepeatState
    created: datetime
    started: datetime | None
    ended: datetime | None
    options: RepeatOptions
    output: str
    """The end of what it printed: the command and Clew, at most 64 KiB."""
    error: str | None
    """Why it failed, and what to do."""
    verdict: Verdict | None
    result: Repeated | None = None
    """The result of repeating an execution."""
    run_result: RepeatedRun | None = None
    """The result of repeating a pipeline run."""


class RepeatRequests(Document, frozen=True, kw_only=True):
    """Newest first, without output and results."""

    repeats: tuple[RepeatRequest, ...]

"""Executions as `clew list` and `clew exec` print them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from clew.documents.document import Document
from clew.documents.ids import ExecutionId, TaskId, Uid

State = Literal["running", "done", "failed", "broken"]


class Execution(Document, frozen=True, kw_only=True):
    """One recorded command. `docs/reference/json.md` describes the fields."""

    id: ExecutionId | None
    """Null only for an execution that could not be added to the graph yet."""
    uid: Annotated[Uid, Meta(pattern="^[0-9a-f]{32}$")]
    name: str | None = None
    command: tuple[str, ...]
    cwd: str | None = None
    agent: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    seconds: Annotated[float, Meta(ge=-1e10, le=1e10)] | None = None
    state: State
    status: int | None = None
    signal: int | None = None
    kind: str = "reference"
    """reference, repetition or modification."""
    parent: ExecutionId | None = None
    collection: str | None = None
    made_elsewhere: bool = False
    """It was pulled or sent here, or repeats one that was: its record is untrusted."""
    signed_by: str | None = None
    """The signer of a pulled record: a known signer's name, or `unknown key` and its
    fingerprint."""
    process_count: int | None = field(default=None, name="processes")
    input_count: int | None = field(default=None, name="inputs")
    output_count: int | None = field(default=None, name="outputs")
    bytes: int | None = None
    new_bytes: int | None = None
    task: TaskId | None = None
    """The pipeline task that it ran: `r1/train`."""
    worker: bool = False
    """It is a worker of a pipeline run, from which tasks are forked."""
    tags: tuple[str, ...] = ()


class Change(Document, frozen=True, kw_only=True):
    """A parameter that differs from that of the parent; null where there is none."""

    name: str
    a: str | None
    b: str | None


class ExecutionNode(Execution, frozen=True, kw_only=True):
    """An execution in `clew list --tree`, with those derived from it."""

    how: str | None = None
    """How it was derived from its parent: repetition, commit or parameters."""
    changes: list[Change] = []
    children: list[ExecutionNode] = []


class ExecutionPage(Document, frozen=True, kw_only=True):
    """Newest first. `next`: the `after` of the next page; null on the last page. `total`: the
    number on all pages; only on the first page."""

    executions: tuple[Execution, ...]
    next: str | None
    total: int | None


class RemovedExecutions(Document, frozen=True, kw_only=True):
    """The executions that were removed, or would be."""

    executions: tuple[Execution, ...]
    dry_run: bool

"""Executions as `clew list` and `clew exec` print them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from clew.documents.document import Document
from clew.documents.ids import ExecutionId, Uid


class Execution(Document, frozen=True, kw_only=True):
    """One recorded command. `docs/reference/json.md` describes the fields."""

    id: ExecutionId | None
    """Null only for an execution that could not be added to the graph yet."""
    uid: Annotated[Uid, Meta(pattern="^[0-9a-f]{32}$")]
    name: str | None = None
    command: list[str]
    cwd: str | None = None
    agent: str | None = None
    started: str | None = None
    ended: str | None = None
    seconds: Annotated[float, Meta(ge=-1e10, le=1e10)] | None = None
    state: str
    """running, done, failed or broken."""
    status: int | None = None
    signal: int | None = None
    kind: str = "reference"
    parent: ExecutionId | None = None
    collection: str | None = None
    made_elsewhere: bool = False
    signed_by: str | None = None
    processes: int | None = None
    inputs: int | None = None
    outputs: int | None = None
    bytes: int | None = None
    new_bytes: int | None = None
    task: str | None = None
    """The pipeline task that it ran: `r1/train`."""
    worker: bool = False
    """It is a worker of a pipeline run, from which tasks are forked."""
    tags: list[str] = []


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

    executions: list[Execution]
    next: str | None
    total: int | None

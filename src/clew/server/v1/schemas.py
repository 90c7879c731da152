"""The types of the response documents, which are those of `--json`.

Documents may gain fields but never lose any, so fields that are not listed here pass through.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


class Document(BaseModel):
    model_config = ConfigDict(extra="allow")


class Execution(Document):
    id: str
    uid: str
    name: str | None
    command: list[str]
    cwd: str | None
    agent: str | None
    started: str | None
    ended: str | None
    seconds: float | None
    state: Literal["running", "done", "failed", "broken"]
    status: int | None
    signal: int | None
    kind: str
    parent: str | None
    collection: str
    made_elsewhere: bool
    signed_by: str | None
    processes: int
    inputs: int
    outputs: int
    bytes: int | None
    new_bytes: int | None
    task: str | None
    worker: bool
    tags: list[str]


class Executions(Document):
    """Newest first. `next`: the `after` of the next page; null on the last page. `total`: the
    number on all pages; only on the first page."""

    executions: list[Execution]
    next: str | None
    total: int | None


class Process(Document):
    id: str
    uid: str
    parent: str | None
    pid: int | None
    command: list[str]
    exe: str | None
    cwd: str | None
    started: str | None
    ended: str | None
    status: int | None
    signal: int | None


class Processes(Document):
    processes: list[Process]


class Gap(Document):
    what: str
    why: str
    path: str | None


class Package(Document):
    manager: str
    name: str
    version: str | None
    requested: bool | None


class File(Document):
    path: str
    role: Literal["input", "output", "transient"]
    category: str = Field(alias="class")
    read: bool
    written: bool
    digest: str | None
    size: int | None
    stored: bool
    package: Package | None
    versions: int


class Files(Document):
    """`total`: the number on all pages; `next`: the `offset` of the next page, null on the last."""

    files: list[File]
    total: int
    next: int | None


class Peer(Document):
    address: str
    host: str | None
    port: int | None
    by: str


class ExecutionDetail(Execution):
    """`files` and `network` only with `detail`."""

    tree: list[Process]
    environment: Json
    git: Json | None
    gaps: list[Gap]
    credential_files: list[str] = []
    files: list[File] = []
    network: list[Peer] = []

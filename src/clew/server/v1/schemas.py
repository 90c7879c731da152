"""The types of the response documents, which are those of `--json`.

Documents may gain fields but never lose any, so fields that are not listed here pass through.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Json = dict[str, Any]


class Document(BaseModel):
    model_config = ConfigDict(extra="allow")


class Problem(Document):
    """RFC 9457; `code` is one of Clew's error codes, `detail` what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str


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


class Executions(Document):
    """Newest first. `next`: the `after` of the next page; null on the last page."""

    executions: list[Execution]
    next: str | None


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


class Version(Document):
    version: str
    path: str
    execution: str
    ordinal: int
    found: bool
    at: str | None
    digest: str | None
    size: int | None
    mode: int | None
    mtime: int | None
    stored: bool


class Versions(Document):
    versions: list[Version]


class Preview(Document):
    """The start of a version's content, shown according to its format."""

    version: str
    digest: str
    size: int
    kind: Literal["text", "table", "image", "binary", "empty"]
    media_type: str
    truncated: bool
    text: str | None = None
    columns: list[str] | None = None
    rows: list[list[str]] | None = None
    image: str | None = Field(default=None, description="base64; only of small images")


class Node(Document):
    id: str
    kind: str
    label: str


class Edge(Document):
    start: str = Field(alias="from")
    to: str
    kind: str


class Lineage(Document):
    target: str
    direction: Literal["up", "down"]
    nodes: list[Node]
    edges: list[Edge]
    roots: list[str]
    truncated: bool


class PathsBetween(Document):
    """Everything on the paths from `from` to `to`; both are null if there is no path."""

    a: str
    b: str
    start: str | None = Field(alias="from")
    to: str | None
    nodes: list[Node]
    edges: list[Edge]
    shortest: list[str]
    truncated: bool


class Hit(Document):
    kind: str
    id: str
    label: str
    by: Literal["name", "command", "path", "digest"]
    execution: str | None
    at: str | None


class SearchResults(Document):
    hits: list[Hit]


class Difference(Document):
    """The document of `clew diff --json` for two executions, or of two runs and their tasks."""

    a: Any
    b: Any
    inputs: Any
    outputs: Any
    divergence: Any


class Note(Document):
    key: str
    value: str
    at: str | None
    agent: str


class Notes(Document):
    notes: list[Note]

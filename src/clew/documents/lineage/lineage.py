"""Lineage, paths between two things, and results of a search."""

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType, field

from clew.documents.document import Document
from clew.documents.ids import Digest, ExecutionId, Locator, VersionId

Direction = Literal["up", "down"]


class SameContent(Document, frozen=True, kw_only=True):
    """An earlier version with the bytes of a file that was found."""

    version: VersionId
    execution: ExecutionId
    path: str
    path_b64: str | UnsetType = UNSET
    made: bool
    """False: this version was found as well."""
    strength: Literal["strong", "weak"]
    member: str | None
    """The name of the file in the archive that this version is."""


class OwnerPackage(Document, frozen=True, kw_only=True):
    """The package that installed a file."""

    manager: str
    name: str
    version: str


class NodeGap(Document, frozen=True, kw_only=True):
    """What could not be observed of an activity in a cluster."""

    what: str
    why: str
    path: str | None


class Node(Document, frozen=True, kw_only=True):
    """A file, a process, or whatever else takes part in a lineage. Those of files, streams and
    network peers have the fields from `path` to `same_content`; those of activities the fields from
    `name` to `hidden`; what is of a cluster has also the fields after these."""

    id: str
    kind: str
    label: str
    execution: ExecutionId | UnsetType | None = UNSET
    made_elsewhere: bool | UnsetType = UNSET
    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    locator: Locator | UnsetType = UNSET
    version: VersionId | UnsetType | None = UNSET
    found: bool | UnsetType = UNSET
    """True: the execution found it there. False: it made it."""
    at: datetime | UnsetType = UNSET
    """When it was made or found."""
    digest: Digest | UnsetType | None = UNSET
    size: int | UnsetType | None = UNSET
    stored: bool | UnsetType = UNSET
    class_: str | UnsetType = field(default=UNSET, name="class")
    package: OwnerPackage | UnsetType | None = UNSET
    changed_outside: bool | UnsetType = UNSET
    source: str | UnsetType | None = UNSET
    """The URL or the SWHID it came from."""
    same_content: tuple[SameContent, ...] | UnsetType = UNSET
    """The likeliest first."""
    name: str | UnsetType | None = UNSET
    command: tuple[str, ...] | UnsetType = UNSET
    exe: str | UnsetType | None = UNSET
    cwd: str | UnsetType | None = UNSET
    started: datetime | UnsetType = UNSET
    hidden: int | UnsetType = UNSET
    """How many files of installed packages it used that are not among the nodes."""
    namespace: str | UnsetType | None = UNSET
    pod: str | UnsetType | None = UNSET
    """NAMESPACE/NAME of the Pod that a container is of."""
    container: str | UnsetType | None = UNSET
    image: str | UnsetType | None = UNSET
    """As the Pod names it; its digest is a node of its own."""
    node: str | UnsetType | None = UNSET
    """Of a cluster; also where a task of a pipeline ran as a Pod."""
    placement: str | UnsetType = UNSET
    """Why a task ran on its node, if the latency-aware scheduler chose that."""
    agent: str | UnsetType | None = UNSET
    owner: str | UnsetType = UNSET
    """The kind and the name of what created the Pod, such as `TFJob mnist`."""
    gaps: tuple[NodeGap, ...] | UnsetType = UNSET


class Edge(Document, frozen=True, kw_only=True):
    """How data flowed from `start` to `end`: a process `used` or `generated` a file, …"""

    start: str = field(name="from")
    end: str = field(name="to")
    kind: str
    how: str | UnsetType = UNSET
    version: VersionId | UnsetType = UNSET
    via: str | UnsetType = UNSET
    strength: str | UnsetType = UNSET
    member: str | UnsetType = UNSET
    inferred: bool | UnsetType = UNSET
    """True: not observed; concluded from times, or from a volume as a whole."""


class Lineage(Document, frozen=True, kw_only=True):
    """The origins of a thing, or its uses."""

    target: str
    direction: Direction
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    roots: tuple[str, ...]
    """The nodes the walk began with."""
    truncated: bool
    """The walk stopped because of its size."""
    withheld: int | UnsetType = UNSET
    """How many nodes the caller may not see: they are in other namespaces, or are connected to the
    target only through such nodes."""


class PathsBetween(Document, frozen=True, kw_only=True):
    """Everything on the paths from `from` to `to`; both are null if there is no path."""

    a: str
    b: str
    start: str | None = field(name="from")
    end: str | None = field(name="to")
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    shortest: tuple[str, ...]
    truncated: bool


class Hit(Document, frozen=True, kw_only=True):
    """Something that a search found; versions have a digest and a size."""

    kind: str
    id: str
    label: str
    by: Literal["id", "name", "command", "image", "note", "tag", "path", "digest"]
    execution: ExecutionId | None
    at: datetime
    digest: Digest | UnsetType | None = UNSET
    size: int | UnsetType | None = UNSET


class SearchResults(Document, frozen=True, kw_only=True):
    hits: tuple[Hit, ...]

"""A lineage as it is drawn: boxes, which may stand for groups of like things, and arrows."""

from datetime import datetime
from typing import Literal

from msgspec import field

from clew.documents.document import Document
from clew.documents.lineage.lineage import Node

Mark = Literal["target", "changed_outside", "made_elsewhere", "same_content", "gap"]
Sides = Literal["up", "down", "both"]


class LineageBox(Document, frozen=True, kw_only=True):
    """One thing to draw: a node of the lineage, or a group of like ones."""

    id: str
    kind: str
    """`data`, `configuration`, `source`, `model`, `package`, `system`, `stream`, `network`,
    `object`, `image`; `process`, `execution`, `run`, or another kind of activity."""
    title: str
    subtitle: str
    marks: tuple[Mark, ...]
    count: int
    """The number of nodes that a group stands for; else 1."""
    members: tuple[str, ...]
    """The first of them."""
    frame: str | None
    """The opened group that it belongs to."""
    before: int
    """How many nodes it came from that are not drawn."""
    after: int
    at: datetime | None
    """When it began, or was made or found; of a group, the earliest."""
    node: Node | None
    """Null for a group."""


class LineageArrow(Document, frozen=True, kw_only=True):
    """How data flowed between two boxes."""

    start: str = field(name="from")
    end: str = field(name="to")
    kinds: tuple[str, ...]
    """The kinds of `Edge`; `through`: through things that are filtered out."""
    count: int
    inferred: bool
    """Nobody saw it: the bytes are equal, or it follows from times or from a volume as a whole."""
    weak: bool
    """The content is too small or too common to be sure of it."""


class LineageFrame(Document, frozen=True, kw_only=True):
    """An opened group."""

    id: str
    kind: str
    title: str
    subtitle: str
    count: int


class KindCount(Document, frozen=True, kw_only=True):
    kind: str
    count: int


class ObservationGap(Document, frozen=True, kw_only=True):
    """Something that could not be observed, and why."""

    id: str
    """The id of the process or the execution."""
    what: str
    why: str
    path: str | None


class DrawnPath(Document, frozen=True, kw_only=True):
    """The paths between two nodes: all boxes on them, and those of a shortest one in order. Both
    are empty if there is no path."""

    start: str = field(name="from")
    end: str = field(name="to")
    boxes: tuple[str, ...]
    shortest: tuple[str, ...]


class LineageGraph(Document, frozen=True, kw_only=True):
    """The lineage of a target, near it and along what was expanded, with like nodes grouped."""

    target: str
    roots: tuple[str, ...]
    """The boxes that the target is, or is in."""
    boxes: tuple[LineageBox, ...]
    arrows: tuple[LineageArrow, ...]
    frames: tuple[LineageFrame, ...]
    kinds: tuple[KindCount, ...]
    """Counts of all nodes, including those that are filtered out."""
    earliest: datetime | None
    latest: datetime | None
    total: int
    """The number of nodes, before groups and filters."""
    filtered: int
    """How many of them are filtered out."""
    hidden_files: int
    """Files of installed packages that the processes used and that are not among the nodes."""
    path: DrawnPath | None
    gaps: tuple[ObservationGap, ...]
    missing: tuple[str, ...]
    """Nodes that should be expanded and no longer exist."""
    truncated: bool
    """The walk stopped because of its size."""
    withheld: int
    """How many nodes near the target the caller may not see: they are in other namespaces."""

"""Up to ten executions and pipeline runs side by side."""

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from clew.documents.document import Document
from clew.documents.ids import VersionId

SectionName = Literal[
    "parameters",
    "metrics",
    "git",
    "command",
    "environment",
    "packages",
    "inputs",
    "outputs",
    "code",
]


class ComparedEntry(Document, frozen=True, kw_only=True):
    id: str
    name: str | None
    state: str
    started: datetime | None
    seconds: float | None


class ComparedRow(Document, frozen=True, kw_only=True):
    """One property of all entries."""

    name: str
    values: tuple[Any, ...]
    """A text, number or boolean for each entry, in their order; null where it has none. For files:
    digests."""
    differs: bool
    versions: tuple[VersionId | None, ...] | UnsetType = UNSET
    """Only of files: the version of each entry; its content can be read if it was stored."""


class ComparedSection(Document, frozen=True, kw_only=True):
    name: SectionName
    rows: tuple[ComparedRow, ...]
    left_out: int
    """How many more rows there are."""


class MetricSeries(Document, frozen=True, kw_only=True):
    """A metric of one entry over time."""

    id: str
    points: tuple[tuple[float, float | None], ...]
    """Step and value; thinned out if there are many."""


class ActivityComparison(Document, frozen=True, kw_only=True):
    entries: tuple[ComparedEntry, ...]
    sections: tuple[ComparedSection, ...]
    series: dict[str, tuple[MetricSeries, ...]]
    """By the name of the metric."""

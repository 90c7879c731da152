"""Reproducing what Pods made: the plan, and what came of it."""

from typing import Literal

from clew.documents.comparisons.differences import Cause
from clew.documents.document import Document
from clew.documents.ids import Uid


class PlannedPod(Document, frozen=True, kw_only=True):
    """A Pod that runs again."""

    pod: str
    namespace: str
    uid: Uid
    image: str
    """By its digest."""
    why: str


class SkippedPod(Document, frozen=True, kw_only=True):
    """A Pod that does not run again."""

    pod: str
    namespace: str
    uid: Uid
    why: str


class OutputDifference(Document, frozen=True, kw_only=True):
    """An output that came out differently."""

    pod: str
    path: str
    kind: Literal["content", "missing"]
    a: str | None
    """The recorded digest."""
    b: str | None


class PodDivergence(Document, frozen=True, kw_only=True):
    """The first Pod that left something else, from equal inputs, and why that may be."""

    pod: str
    causes: tuple[Cause, ...]


class NotReproduced(Document, frozen=True, kw_only=True):
    """What is not as it was when the Pods ran."""

    what: str
    why: str


class Reproduction(Document, frozen=True, kw_only=True):
    """The fewest Pods that reproduce a target, and how their outputs compare."""

    target: str
    plan: tuple[PlannedPod, ...]
    """In the order in which they run."""
    skipped: tuple[SkippedPod, ...]
    pods_by_volume: int
    """How many Pods a plan has that does not tell files apart."""
    pods_by_file: int
    verdict: Literal["identical", "different"] | None = None
    """null: nothing was compared."""
    compared: int = 0
    """Outputs."""
    differences: tuple[OutputDifference, ...] = ()
    divergence: PodDivergence | None = None
    not_reproduced: tuple[NotReproduced, ...] = ()

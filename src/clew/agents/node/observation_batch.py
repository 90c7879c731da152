"""A batch of observations: everything that the observer found in one pass over its queues."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.agents.node.containers.watch_plan import PlannedContainer, PlannedPod, UnseenVolume
from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.kernel.fanotify import FileEvent
from clew.documents.ids import Locator, Uid


@dataclass
class MissedContainer:
    """A container that ended, or was given up, before its mounts were marked."""

    uid: Uid
    pod: PlannedPod
    planned: PlannedContainer | None
    """None: it is not known which one of the Pod it was."""
    wholes: Collection[Locator]
    """The volumes that the policy selects."""
    unseen: Sequence[UnseenVolume] = ()
    """Those of them that could not have been watched anyway."""
    why: str = "the container could not be marked in time"


@dataclass
class ObservationBatch:
    """The observations of one pass."""

    at: int
    found: list[WatchedContainer] = field(default_factory=list)
    accesses: dict[Uid, bytes] = field(default_factory=dict)
    layers: list[tuple[Uid, WatchedMount, bytes]] = field(default_factory=list)
    names: list[tuple[int, FileEvent, Uid | None, bool]] = field(default_factory=list)
    """By device: an event, the container of its process, and whether that is known."""
    gone: list[Uid] = field(default_factory=list)
    unwatched: list[Collection[str] | None] = field(default_factory=list)
    """The volumes that each container can have written unseen; None: any."""
    missed: list[MissedContainer] = field(default_factory=list)
    containers_lost: bool = False
    """Whether containers may have come and gone unseen."""
    news: bool = False
    """Whether there is more in `unwatched` than in the batch before."""

    def __bool__(self) -> bool:
        seen = self.found, self.accesses, self.layers, self.names, self.gone, self.missed
        return any(seen) or self.containers_lost or self.news

    @property
    def size(self) -> int:
        """Roughly how much memory it takes, in bytes."""
        layers = sum(len(data) for _, _, data in self.layers)
        return sum(map(len, self.accesses.values())) + layers + 200 * len(self.names)


class Observer(Protocol):
    """Collects observations in one thread, and gives them to another."""

    def run(self) -> None:
        """Observe until `stop`, and read what is there once more."""

    def next_batch(self, seconds: float) -> ObservationBatch | None:
        """The next batch, or None after these seconds."""

    def stop(self) -> None:
        """End `run`."""

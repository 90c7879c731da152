"""What the agent lost of the containers that it watches.

Every loss is a gap, and the container counts as watched no longer: queries then infer what it may
have read and written from the volume as a whole, instead of taking silence for evidence.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from clew.agents.node.lifecycle_events import declare, report_gap
from clew.documents.ids import Locator, Uid
from clew.prov.cluster.watch_declarations import UNWATCHED, whole_volume
from clew.prov.events import AnyEvent, Gap, Generated, Invalidated, Looked, Started, Used


class Losses:
    """Reports each gap once for each container."""

    def __init__(self, report: Callable[[AnyEvent], None], counts: Counter[str]) -> None:
        self._report = report
        self._counts = counts
        self._reported: set[tuple[Uid, str, Locator | None]] = set()
        self._dropped: Counter[tuple[Uid, Locator]] = Counter()

    def add_gap(
        self, container: Uid, at: int, what: str, why: str, locator: Locator | None = None
    ) -> None:
        """Something is not known of what the container accessed. Once, whatever the locator."""
        if (container, what, None) not in self._reported:
            self._reported.add((container, what, None))
            self._report(report_gap(container, at, what, why, locator))

    def lose(self, container: Uid, at: int, what: str, why: str, wholes: Iterable[Locator]) -> None:
        """Accesses to these volumes were not seen."""
        for whole in dict.fromkeys(wholes):
            if (container, what, whole) not in self._reported:
                self._reported.add((container, what, whole))
                self._report(report_gap(container, at, what, why, whole))
                self._report(declare(container, at, UNWATCHED, whole))
                self._counts["unwatched"] += 1

    def drop(self, events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
        """Count accesses that cannot be kept; yields what is small and must be."""
        for event in events:
            if isinstance(event, Used | Generated | Invalidated):
                self._dropped[event.activity, whole_volume(event.version.locator)] += 1
            elif isinstance(event, Started | Looked | Gap):
                yield event

    def list_dropped(self, at: int) -> Iterator[AnyEvent]:
        """Reports of what was dropped since it was last forgotten."""
        for (container, whole), count in self._dropped.items():
            what = f"{count} accesses to files"
            yield report_gap(container, at, what, "the spool was full", whole)
            yield declare(container, at, UNWATCHED, whole)

    def forget_dropped(self) -> None:
        self._dropped.clear()

    def forget(self, container: Uid) -> None:
        """It has ended."""
        self._reported = {one for one in self._reported if one[0] != container}

"""What a witness declares of the file accesses of a container to a volume: kinds of `looked`.

Queries believe that a container read nothing else only if a witness saw it start and end, and never
said that it lost something. An agent that dies, or that loses what it observed, declares no end: so
silence never counts as evidence.
"""

from collections.abc import Iterable
from typing import Final

from clew.documents.ids import Locator
from clew.prov.cluster.locators import claim_locator, split_volume_locator
from clew.prov.events import AnyEvent, Generated, Invalidated, Looked, Used

WATCHED: Final = "watched"
"""From the start of the container on, all its accesses are seen."""
WATCHED_TO_END: Final = "watched_to_end"
"""The container has ended, and its last accesses were seen."""
UNWATCHED: Final = "unwatched"
"""Accesses were lost. It holds for the whole container, whenever that was."""

WATCH_KINDS: Final = frozenset({WATCHED, WATCHED_TO_END, UNWATCHED})


def whole_volume(locator: Locator) -> Locator:
    """The locator of the claim that a file is on; a locator without a claim is returned
    unchanged."""
    place = split_volume_locator(locator)
    return locator if place is None else claim_locator(place.namespace, place.claim)


def declare_lost(events: Iterable[AnyEvent]) -> list[Looked]:
    """The declarations (`unwatched`) for lost accesses: one for each container and volume."""
    lost = {
        (event.activity, whole_volume(event.version.locator)): event
        for event in events
        if isinstance(event, Used | Generated | Invalidated)
        and split_volume_locator(event.version.locator) is not None
    }
    return [
        Looked(
            execution=event.execution,
            n=0,
            at=event.at,
            activity=container,
            kind=UNWATCHED,
            locator=volume,
        )
        for (container, volume), event in lost.items()
    ]

"""Numbers of events that several witnesses send about one activity.

The number of an event is part of its row's key. A recorder counts its events; the witnesses of a
cluster cannot, because they do not know each other and deliver again after a restart. So the number
is a hash of what the event says: the same fact is one row, however many witnesses report
it and how often, and two facts never replace each other.

Of some kinds the graph keeps one row, by number; there the high bits of the number decide:

    started   the smallest counts: the fewer facts it lacks, the smaller
    content   the largest counts: one whose bytes are stored is larger
    ended     the later numbers add to the earlier ones: the earlier the end, the larger
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec
from blake3 import blake3

from clew.prov.events import AnyEvent, Content, Ended, Event, Started

MAX_NUMBER = 2**53
"""Numbers are below this, so that JavaScript can read them."""
_MOST_FACTS = 2047
_HASH_BITS = 40
_SECOND = 1_000_000_000
_LAST_SECOND = 2**32 - 1
_packer = msgspec.msgpack.Encoder(order="deterministic")

_Event = TypeVar("_Event", bound=Event)


def number_events(events: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """The events with their numbers, whatever number they had."""
    return (number_event(event) for event in events)


def number_event(event: _Event) -> _Event:
    event = msgspec.structs.replace(event, n=0)
    digest = int.from_bytes(blake3(_packer.encode(event)).digest(length=8), "big")
    if isinstance(event, Started):
        lacking = _MOST_FACTS - min(_count_facts(event), _MOST_FACTS)
        number = lacking << _HASH_BITS | digest % 2**_HASH_BITS
    elif isinstance(event, Ended):
        before_last = _LAST_SECOND - min(event.at // _SECOND, _LAST_SECOND)
        number = 2**52 + (before_last << 20) + digest % 2**20
    else:
        number = 2**52 + digest % 2**51
        if isinstance(event, Content) and event.stored:
            number += 2**51
    return msgspec.structs.replace(event, n=number)


def _count_facts(event: Started) -> int:
    return sum(map(_count_values, msgspec.structs.asdict(event).values()))


def _count_values(value: Any) -> int:
    """How many values a document has that say something."""
    if isinstance(value, dict):
        return sum(map(_count_values, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_count_values, value))
    return 0 if value is None or value == "" else 1

"""The event types that every witness writes and the fold reads.

Ten event types, plain and typed, written as newline-delimited JSON or as MessagePack.
An event's id is the hash of its canonical content, so the same event twice is one event.
Fields are only ever added, always with a default; `docs/formats/events.md` describes them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from clew.documents.ids import Digest, Locator, Uid

Observation = tuple[str, Locator, str]
"""A question of a process, and the result: the kind, locator and answer of a look."""


class Version(msgspec.Struct, frozen=True, array_like=True):
    """One state of one thing: where, who made it (or first found it), and which of theirs."""

    locator: Locator
    maker: Uid
    ordinal: int


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """The fields of every event: its execution, its number there, and its time (ns since the
    epoch)."""

    execution: Uid
    n: int
    at: int


class Started(Event, frozen=True, kw_only=True, tag="started"):
    """An activity began."""

    activity: Uid
    kind: str  # execution, process, task, cell, pod, job …
    parent: Uid | None = None
    number: int | None = None  # a process's number within its execution: the 3 of e2.p3
    pid: int | None = None
    agent: str | None = None
    command: tuple[str, ...] = ()
    exe: str | None = None
    cwd: str | None = None
    name: str | None = None
    environment: dict[str, str | None] = {}  # a process: what differs from its execution's
    image: str | None = None
    node: str | None = None
    facets: dict[str, Any] = {}


class Ended(Event, frozen=True, kw_only=True, tag="ended"):
    """It ended: how, and what it cost. Facets learnt on the way are added to the first ones."""

    activity: Uid
    status: int | None = None
    signal: int | None = None
    usage: dict[str, float] = {}
    facets: dict[str, Any] = {}


class Used(Event, frozen=True, kw_only=True, tag="used"):
    """It opened, or inherited open, a version for reading."""

    activity: Uid
    version: Version
    # open, inherited, exec, append (kept what was there), connect, fetch;
    # rename, link, exchange, metadata: the old version of what is generated at the same time
    how: str = "open"


class Generated(Event, frozen=True, kw_only=True, tag="generated"):
    """It wrote a version."""

    activity: Uid
    version: Version
    how: str = "write"  # write, inherited, rename, link, exchange, symlink, metadata
    finished: bool = False  # nothing was written after this event: what is used later is not in it


class Invalidated(Event, frozen=True, kw_only=True, tag="invalidated"):
    """It deleted or replaced a version."""

    activity: Uid
    version: Version
    how: str = "delete"  # delete, rename, replace


class Content(Event, frozen=True, kw_only=True, tag="content"):
    """A version's bytes are known."""

    version: Version
    digest: Digest
    size: int
    mode: int
    mtime: int
    stored: bool = True  # false: only the digest was kept (an exclusion, --no-content)
    package: str | None = None  # a package URL: who installed the file
    source: str | None = None  # where it was fetched from, as its command's own words tell


class Looked(Event, frozen=True, kw_only=True, tag="looked"):
    """A process asked for something other than bytes; `answer` is the result, to compare later.

    `also` has what it asked next, with the same time. A compiler looks for a hundred headers: one
    event for all of them is much cheaper to record. A listing, whose answer names content, always
    comes first.
    """

    activity: Uid
    kind: str  # absent, present, times, listing, link
    locator: Locator
    answer: str = ""
    also: tuple[Observation, ...] = ()


class Informed(Event, frozen=True, kw_only=True, tag="informed"):
    """`activity` received data from `by` without a file."""

    activity: Uid
    by: Uid
    via: str  # pipe, socket, signal, parameter, fork (what it inherits of another execution)


class Alias(Event, frozen=True, kw_only=True, tag="alias"):
    """Two locators are one thing."""

    a: Locator
    b: Locator


class Gap(Event, frozen=True, kw_only=True, tag="gap"):
    """Something could not be seen, and why."""

    activity: Uid
    what: str
    why: str
    locator: Locator | None = None


AnyEvent = (
    Started | Ended | Used | Generated | Invalidated | Content | Looked | Informed | Alias | Gap
)

TYPES = frozenset(
    {
        "started", "ended", "used", "generated", "invalidated",
        "content", "looked", "informed", "alias", "gap",
    }
)  # fmt: skip

_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(AnyEvent)
_packer = msgspec.msgpack.Encoder(order="deterministic")
_unpacker = msgspec.msgpack.Decoder(AnyEvent)


def to_lines(events: Iterable[AnyEvent]) -> Iterator[bytes]:
    """One JSON object a line."""
    for event in events:
        yield _encoder.encode(event) + b"\n"


def from_lines(lines: Iterable[bytes]) -> Iterator[AnyEvent]:
    """Read what `to_lines` wrote.

    A last line that was cut off is not an event yet, and one of a type that only a newer Clew
    knows is nothing this one could use: both are left out.
    """
    for line in lines:
        if line.endswith(b"\n"):
            event = _decode_known(line, _decoder.decode, msgspec.json.decode)
            if event is not None:
                yield event


def to_batch(events: list[AnyEvent]) -> bytes:
    """Many events as one MessagePack document."""
    return _packer.encode(events)


def from_batch(batch: bytes) -> list[AnyEvent]:
    """Read what `to_batch` wrote, without the types that only a newer Clew knows."""
    reader = BatchReader(len(batch))
    events = (reader.read_packed(raw) for raw in split_batch(batch))
    return [event for event in events if event is not None]


MAX_EVENT_BYTES = 4 << 20
"""Bytes of one event as it is encoded."""
MIN_EVENT_BYTES = 32
"""Bytes: the uid of its execution alone takes as many."""
MIN_VALUES_LIMIT = 1_000_000
"""Words, variables and values of facets that any batch may hold, and one more for each"""
BYTES_PER_VALUE = 16
"""of its bytes: a byte of an untyped document may take a hundred bytes of memory."""
MAX_DEPTH = 64
"""Documents in documents."""


def split_batch(batch: bytes) -> list[msgspec.Raw]:
    """The events of a MessagePack document, not decoded yet. A header alone may declare billions
    of them: they are counted against the bytes that are there before a list is made."""
    count = _declared_length(batch)
    if count * MIN_EVENT_BYTES > len(batch):
        raise msgspec.ValidationError(f"{count} events do not fit into {len(batch)} bytes")
    return msgspec.msgpack.decode(batch, type=list[msgspec.Raw])


def _declared_length(batch: bytes) -> int:
    """How many elements an array begins with; 0 where the batch begins with something else."""
    kind = batch[0] if batch else 0
    if kind & 0xF0 == 0x90:
        return kind & 0x0F
    width = {0xDC: 2, 0xDD: 4}.get(kind, 0)
    return int.from_bytes(batch[1 : 1 + width], "big")


class BatchReader:
    """Decodes the events of one batch from elsewhere; DecodeError when they take too much."""

    def __init__(self, size: int) -> None:
        """`size`: the bytes of the whole batch."""
        self._left = MIN_VALUES_LIMIT + size // BYTES_PER_VALUE

    def read_packed(self, raw: msgspec.Raw) -> AnyEvent | None:
        """An event in MessagePack; None for a type that only a newer Clew knows."""
        return self._read(raw, _unpacker.decode, msgspec.msgpack.decode)

    def read_line(self, line: bytes) -> AnyEvent | None:
        """An event in JSON."""
        return self._read(line, _decoder.decode, msgspec.json.decode)

    def _read(
        self,
        raw: bytes | msgspec.Raw,
        decode: Callable[[bytes], AnyEvent],
        decode_any: Callable[[bytes], Any],
    ) -> AnyEvent | None:
        if len(memoryview(raw)) > MAX_EVENT_BYTES:
            raise msgspec.ValidationError(f"an event has more than {MAX_EVENT_BYTES} bytes")
        try:
            event = _decode_known(bytes(raw), decode, decode_any)
        except RecursionError as error:
            raise msgspec.ValidationError("an event is nested too deeply") from error
        except UnicodeDecodeError as error:
            raise msgspec.ValidationError("a text of an event is not UTF-8") from error
        if isinstance(event, Started):
            self._count(event.facets, event.environment, event.command)
        elif isinstance(event, Ended):
            self._count(event.facets, event.usage)
        return event

    def _count(self, *documents: object) -> None:
        waiting = [(document, 0) for document in documents]
        while waiting:
            value, depth = waiting.pop()
            if isinstance(value, dict | list | tuple):
                self._left -= len(value)
                below = value.values() if isinstance(value, dict) else value
                waiting.extend((one, depth + 1) for one in below)
            if self._left < 0:
                raise msgspec.ValidationError("the events hold too many values for their size")
            if depth > MAX_DEPTH:
                raise msgspec.ValidationError("an event is nested too deeply")


def _decode_known(
    raw: bytes, decode: Callable[[bytes], AnyEvent], decode_any: Callable[[bytes], Any]
) -> AnyEvent | None:
    """The event, or None where its type is unknown; a known type that is malformed is an error."""
    try:
        return decode(raw)
    except msgspec.ValidationError:
        fields = decode_any(raw)
        if isinstance(fields, dict) and fields.get("event") not in TYPES:
            return None
        raise

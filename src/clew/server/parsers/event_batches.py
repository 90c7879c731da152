"""A batch of events from outside: read whole, and refused as a whole, with the place of the fault.

Newline-delimited JSON or MessagePack, as `docs/formats/events.md` has them, plain or compressed.
Types of events that only a newer Clew knows are passed over.
"""

import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import zstandard

from clew.errors import ClewError
from clew.prov.events import MIN_EVENT_BYTES, AnyEvent, BatchReader, split_batch

MAX_BATCH_BYTES = 32 << 20
"""Bytes of a batch as it is sent."""
MAX_DECOMPRESSED_BYTES = 512 << 20
"""Bytes of a batch that was sent compressed: some millions of events."""
MAX_RATIO = 200
"""How many times its size a batch may unfold to, beyond this many bytes:"""
RATIO_FREE_BYTES = 16 << 20
JSON_TYPES = frozenset({"application/x-ndjson", "application/jsonl", "application/json"})
MSGPACK_TYPES = frozenset(
    {"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"}
)
_UID = re.compile(r"[0-9a-f]{32}")
_LARGEST = (1 << 63) - 1
_PIECE = 256
"""Bytes that are unfolded at once: they may become megabytes."""
_BLANK = 1000
"""Lines of a batch that may be empty."""
_OFTEN = 1000
"""Events between two looks at whether the batch is still wanted."""
_NOTHING = "nothing of the batch was taken; docs/formats/events.md says what an event is"


class Malformed(ClewError):
    code = "malformed"
    exit_status = 2
    http_status = 422


class TooLarge(ClewError):
    code = "too-large"
    http_status = 413


class UnsupportedMedia(ClewError):
    code = "not-understood"
    http_status = 415


def decompress(body: bytes, coding: str) -> bytes:
    """A body as it was before it was compressed."""
    if coding in ("", "identity"):
        return body
    if coding not in ("zstd", "gzip"):
        raise UnsupportedMedia(f"what is compressed by {coding} is not read", hint="zstd or gzip")
    try:
        return _unfolded(body, coding)
    except (zstandard.ZstdError, zlib.error) as error:
        raise Malformed(f"the batch is not {coding}: {error}") from error


def _unfolded(body: bytes, coding: str) -> bytes:
    """Piece by piece: a little may unfold to a great deal."""
    unfolding: Any
    if coding == "zstd":
        unfolding = zstandard.ZstdDecompressor().decompressobj()
    else:
        unfolding = zlib.decompressobj(wbits=31)
    found = bytearray()
    most = min(MAX_DECOMPRESSED_BYTES, max(RATIO_FREE_BYTES, MAX_RATIO * len(body)))
    at = 0
    while at < len(body) and not unfolding.eof:  # behind its end, zlib copies all that is left
        found += unfolding.decompress(body[at : at + _PIECE])
        if len(found) > most:
            raise TooLarge(f"the batch unfolds to more than {most} bytes", hint="send parts")
        at += _PIECE
    if not unfolding.eof or unfolding.unused_data or at < len(body):
        raise Malformed(f"the batch is not {coding}: it does not end where it should")
    return bytes(found)


def parse_batch(body: bytes, kind: str, check: Callable[[], None] = lambda: None) -> list[AnyEvent]:
    """The events of a batch of this media type; Malformed names the first that is none. `check` is
    called now and then, and may raise."""
    if kind in JSON_TYPES:
        return _checked(_lines(body), check)
    if kind in MSGPACK_TYPES:
        return _checked(_packed(body), check)
    raise UnsupportedMedia(
        f"events are not read from {kind or 'a body without a type'}",
        hint="application/x-ndjson or application/msgpack",
    )


def _lines(body: bytes) -> Iterator[AnyEvent | None]:
    if body.count(b"\n") > len(body) // MIN_EVENT_BYTES + _BLANK:
        raise Malformed("the batch is made of lines that are too short for events", hint=_NOTHING)
    reader = BatchReader(len(body))
    for line in io.BytesIO(body):
        yield reader.read_line(line) if line.strip() else None


def _packed(body: bytes) -> Iterator[AnyEvent | None]:
    try:
        raws = split_batch(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the batch is no MessagePack array of events: {error}") from error
    yield from map(BatchReader(len(body)).read_packed, raws)


def _checked(found: Iterator[AnyEvent | None], check: Callable[[], None]) -> list[AnyEvent]:
    good: set[str] = set()
    events: list[AnyEvent] = []
    for number in itertools.count(1):
        if number % _OFTEN == 0:
            check()
        try:
            event = next(found)
        except StopIteration:
            return events
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _malformed(number, str(error)) from error
        if event is None:
            continue
        if event.execution not in good:
            if not _UID.fullmatch(event.execution):
                raise _malformed(number, "the uid of an execution is 32 hexadecimal digits")
            good.add(event.execution)
        events.append(event)
    raise AssertionError("counting does not end")


def find_unstorable(events: list[AnyEvent]) -> Malformed | None:
    """The event that no database can store, if there is one. Slow: called only after a failure."""
    for number, event in enumerate(events, 1):
        if not _sound(msgspec.to_builtins(event, enc_hook=repr)):
            why = "a number is beyond 64 bits, or a text holds a zero byte"
            return Malformed(f"event {number} cannot be kept: {why}", hint=_NOTHING)
    return None


def _sound(value: object) -> bool:
    if isinstance(value, int):
        return -_LARGEST <= value <= _LARGEST
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, dict):
        return all(map(_sound, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_sound, value))
    return True


def _malformed(number: int, why: str) -> Malformed:
    return Malformed(f"line {number} is not an event: {why}", hint=_NOTHING)

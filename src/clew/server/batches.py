"""A batch of events from outside: read whole, and refused as a whole, with the place of the fault.

Newline-delimited JSON or MessagePack, as `docs/formats/events.md` has them, plain or compressed.
Types of events that only a newer Clew knows are passed over.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec
import zstandard

from clew.errors import ClewError
from clew.prov.events import AnyEvent, from_batch, from_lines

MOST = 32 << 20
"""Bytes of a batch as it is sent."""
UNFOLDED = 512 << 20
"""Bytes of a batch that was sent compressed: some millions of events."""
LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/json"})
PACKED = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})
_UID = re.compile(r"[0-9a-f]{32}")
_LARGEST = (1 << 63) - 1
_PIECE = 4 << 10
_NOTHING = "nothing of the batch was taken; docs/formats/events.md says what an event is"


class Malformed(ClewError):
    code = "malformed"
    exit_status = 2
    http_status = 422


class TooLarge(ClewError):
    code = "too-large"
    http_status = 413


class NotUnderstood(ClewError):
    code = "not-understood"
    http_status = 415


def plain(body: bytes, coding: str) -> bytes:
    """A body as it was before it was compressed."""
    if coding in ("", "identity"):
        return body
    if coding not in ("zstd", "gzip"):
        raise NotUnderstood(f"what is compressed by {coding} is not read", hint="zstd or gzip")
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
    for at in range(0, len(body), _PIECE):
        found += unfolding.decompress(body[at : at + _PIECE])
        if len(found) > UNFOLDED:
            raise TooLarge(f"the batch unfolds to more than {UNFOLDED} bytes", hint="send parts")
    if not unfolding.eof or unfolding.unused_data:
        raise Malformed(f"the batch is not {coding}: it does not end where it should")
    return bytes(found)


def read(body: bytes, kind: str) -> list[AnyEvent]:
    """The events of a batch of this media type; Malformed names the first that is none."""
    if kind in LINES:
        return _checked(list(_lines(body)))
    if kind in PACKED:
        return _checked(list(_packed(body)))
    raise NotUnderstood(
        f"events are not read from {kind or 'a body without a type'}",
        hint="application/x-ndjson or application/msgpack",
    )


Placed = list[tuple[int, AnyEvent]]


def _lines(body: bytes) -> Iterator[tuple[int, AnyEvent]]:
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            try:
                for event in from_lines([line + b"\n"]):
                    yield number, event
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise _malformed(number, str(error)) from error


def _packed(body: bytes) -> Iterator[tuple[int, AnyEvent]]:
    try:
        yield from enumerate(from_batch(body), 1)
        return
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)
    try:
        raws = msgspec.msgpack.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the batch is no MessagePack array: {error}") from error
    for number, raw in enumerate(raws, 1):
        try:
            from_batch(b"\x91" + bytes(raw))  # an array of one
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _malformed(number, str(error)) from error
    raise Malformed(f"the batch cannot be read: {why}")


def _checked(found: Placed) -> list[AnyEvent]:
    good: set[str] = set()
    for number, event in found:
        if event.execution not in good:
            if not _UID.fullmatch(event.execution):
                raise _malformed(number, "the uid of an execution is 32 hexadecimal digits")
            good.add(event.execution)
    return [event for _, event in found]


def find_unsound(events: list[AnyEvent]) -> Malformed | None:
    """The event that no database can hold, if there is one: slow, and so asked only afterwards."""
    for number, event in enumerate(events, 1):
        if not _sound(msgspec.to_builtins(event)):
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
    return Malformed(f"line {number} is no event: {why}", hint=_NOTHING)

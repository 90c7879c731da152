"""The base class of documents, and their times.

A field that only some documents of a type have is `UNSET` where it is absent, and then left out
of the JSON; `UNSET` is false. All other fields are always present, as null if unknown.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON document: an immutable value whose fields are those of the JSON."""

    def as_json(self) -> dict[str, Any]:
        """The document as `--json` prints it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


def encode(document: object) -> bytes:
    """A document as JSON. It is ASCII where a text cannot be encoded in UTF-8, such as a word of a
    command that is not UTF-8."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(document)).encode()


def from_nanoseconds(at: int) -> datetime:
    """The time that is `at` nanoseconds after the epoch."""
    return _EPOCH + timedelta(microseconds=at // 1000)


def to_nanoseconds(time: datetime) -> int:
    """Nanoseconds since the epoch."""
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000

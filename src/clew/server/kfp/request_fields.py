"""What a client sends, read with care.

Kubeflow's API takes every field by two spellings, `display_name` and `displayName`, and whole
numbers as numbers or as texts. What is of the wrong kind, too long, or cannot be kept in a
database is refused with the name of the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from clew.bounded_documents import load_json
from clew.errors import NotFound, UsageError
from clew.server.service import Service

MAX_NAME = 255
MAX_TEXT = 64 << 10
_MOST = 2**63
_ID = re.compile(r"[0-9A-Za-z-]{1,64}", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Fields:
    """A JSON object, or the parameters of an address."""

    def __init__(self, words: Mapping[str, Any], place: str = "") -> None:
        self._words = words
        self._place = place

    def value(self, name: str) -> Any:
        found = self._words.get(name)
        return self._words.get(_camel(name)) if found is None else found

    def text(self, name: str, *, longest: int = MAX_TEXT) -> str:
        """Empty where there is none."""
        found = self.value(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self._refused(name, "is no text")
        return self._kept(name, found, longest)

    def named(self, name: str) -> str:
        """A text that must be there, and be short."""
        found = self.text(name, longest=MAX_NAME)
        if not found.strip():
            raise self._refused(name, "is missing")
        return found

    def id(self, name: str) -> str:
        """The id of something; what cannot be one names nothing."""
        found = self.value(name)
        if found is None or found == "":
            return ""
        if not isinstance(found, str):
            raise self._refused(name, "is no text")
        if not _ID.fullmatch(found):
            raise NotFound(f"{self._place}{name}: there is no {found[:80]!r}")
        return found

    def whole(self, name: str) -> int | None:
        found = self.value(name)
        if found is None or found == "":
            return None
        if isinstance(found, str) and _WHOLE.fullmatch(found):
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool) or not -_MOST <= found < _MOST:
            raise self._refused(name, "is no whole number")
        return found

    def flag(self, name: str) -> bool:
        found = self.value(name)
        if found in (None, "", False, "false", "False", "0"):
            return False
        if found in (True, "true", "True", "1"):
            return True
        raise self._refused(name, "is neither true nor false")

    def moment(self, name: str) -> int | None:
        """Nanoseconds since 1970, from a time as RFC 3339 writes it."""
        found = self.text(name)
        if not found:
            return None
        try:
            return parse_timestamp(found)
        except ValueError as error:
            raise self._refused(name, "is no time like 2030-01-31T09:00:00Z") from error

    def part(self, name: str) -> Fields | None:
        found = self.value(name)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise self._refused(name, "is no object")
        return Fields(found, f"{self._place}{name}.")

    def pairs(self, name: str) -> dict[str, str]:
        """Names with a text each, as an object or as its JSON."""
        found = self.value(name)
        if isinstance(found, str) and found:
            found = parsed(found, f"{self._place}{name}")
        if not found:
            return {}
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise self._refused(name, "is no object of texts")
        inside = Fields(found, f"{self._place}{name}.")
        return {
            inside._kept(key, key, MAX_NAME): inside._kept(key, value, MAX_NAME)
            for key, value in found.items()
        }

    def _kept(self, name: str, text: str, longest: int) -> str:
        if len(text) > longest:
            raise self._refused(name, f"is longer than {longest} characters")
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise self._refused(name, "holds what is no character")
        return text

    def _refused(self, name: str, why: str) -> UsageError:
        return UsageError(f"{self._place}{name} {why}")


def parsed(text: bytes | str, what: str) -> Any:
    """The JSON that somebody sent."""
    return load_json(text, what)


def parse_timestamp(text: str) -> int:
    """Nanoseconds since 1970; a ValueError for what is no time, or too far away."""
    found = datetime.fromisoformat(text)
    since = found.replace(tzinfo=found.tzinfo or UTC) - _EPOCH
    nanoseconds = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if not -_MOST <= nanoseconds < _MOST:
        raise ValueError(text)
    return nanoseconds


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


async def _service(request: Request) -> Service:
    found = request.app.state.service
    assert isinstance(found, Service)
    return found


async def _address(request: Request) -> Fields:
    return Fields({**request.query_params, **request.path_params})


async def _body(request: Request) -> Fields:
    try:
        found = parsed(await request.body(), "the body")
    except ClientDisconnect as error:
        raise UsageError("the request broke off") from error
    if not isinstance(found, dict):
        raise UsageError("the body is no JSON object")
    return Fields(found)


ServiceDep = Annotated[Service, Depends(_service)]
UrlFields = Annotated[Fields, Depends(_address)]
BodyFields = Annotated[Fields, Depends(_body)]

"""Reads and checks the fields of a request.

Kubeflow's API accepts two spellings of every field, `display_name` and `displayName`, and integers
as numbers or strings. A value of the wrong type, one that is too long, or one that a database
cannot store is refused with the name of its field.
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
from clew.server.server_state import Service

MAX_NAME = 255
MAX_TEXT = 64 << 10
_INT64_END = 2**63
_ID = re.compile(r"[0-9A-Za-z-]{1,64}", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Fields:
    """A JSON object, or the parameters of a URL. `prefix`: of field names in error messages."""

    def __init__(self, values: Mapping[str, Any], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    def value(self, name: str) -> Any:
        value = self._values.get(name)
        if value is None:
            first, *rest = name.split("_")
            value = self._values.get(first + "".join(word.capitalize() for word in rest))
        return value

    def text(self, name: str, *, max_length: int = MAX_TEXT) -> str:
        """A string; empty if the field is missing."""
        value = self.value(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._error(name, "must be a string")
        return self._check_text(name, value, max_length)

    def required_name(self, name: str) -> str:
        """A short string that must be present."""
        value = self.text(name, max_length=MAX_NAME)
        if not value.strip():
            raise self._error(name, "is missing")
        return value

    def id(self, name: str) -> str:
        """An id, or empty; a string that cannot be an id is not found."""
        value = self.value(name)
        if value is None or value == "":
            return ""
        if not isinstance(value, str):
            raise self._error(name, "must be a string")
        if not _ID.fullmatch(value):
            raise NotFound(f"{self._prefix}{name}: there is no {value[:80]!r}")
        return value

    def integer(self, name: str) -> int | None:
        value = self.value(name)
        if value is None or value == "":
            return None
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            value = int(value)
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or not -_INT64_END <= value < _INT64_END
        ):
            raise self._error(name, "must be a 64-bit integer")
        return value

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if value in (None, "", False, "false", "False", "0"):
            return False
        if value in (True, "true", "True", "1"):
            return True
        raise self._error(name, "must be true or false")

    def timestamp(self, name: str) -> int | None:
        """Nanoseconds since 1970, from an RFC 3339 time."""
        value = self.text(name)
        if not value:
            return None
        try:
            return parse_timestamp(value)
        except ValueError as error:
            raise self._error(name, "must be a time like 2030-01-31T09:00:00Z") from error

    def object(self, name: str) -> Fields | None:
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._error(name, "must be an object")
        return Fields(value, f"{self._prefix}{name}.")

    def string_map(self, name: str) -> dict[str, str]:
        """An object of strings, or its JSON text."""
        value = self.value(name)
        if isinstance(value, str) and value:
            value = load_json(value, f"{self._prefix}{name}")
        if not value:
            return {}
        if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
            raise self._error(name, "must be an object of strings")
        entries = Fields(value, f"{self._prefix}{name}.")
        return {
            entries._check_text(key, key, MAX_NAME): entries._check_text(key, text, MAX_NAME)
            for key, text in value.items()
        }

    def _check_text(self, name: str, text: str, max_length: int) -> str:
        if len(text) > max_length:
            raise self._error(name, f"is longer than {max_length} characters")
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            raise self._error(name, "contains invalid characters")
        return text

    def _error(self, name: str, why: str) -> UsageError:
        return UsageError(f"{self._prefix}{name} {why}")


def parse_timestamp(text: str) -> int:
    """Nanoseconds since 1970; ValueError if it is not a time, or out of range."""
    time = datetime.fromisoformat(text)
    since = time.replace(tzinfo=time.tzinfo or UTC) - _EPOCH
    nanoseconds = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if not -_INT64_END <= nanoseconds < _INT64_END:
        raise ValueError(text)
    return nanoseconds


async def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


async def _url_fields(request: Request) -> Fields:
    return Fields({**request.query_params, **request.path_params})


async def _body_fields(request: Request) -> Fields:
    try:
        value = load_json(await request.body(), "the body")
    except ClientDisconnect as error:
        raise UsageError("the client disconnected") from error
    if not isinstance(value, dict):
        raise UsageError("the body must be a JSON object")
    return Fields(value)


ServiceDep = Annotated[Service, Depends(_service)]
UrlFields = Annotated[Fields, Depends(_url_fields)]
BodyFields = Annotated[Fields, Depends(_body_fields)]

"""A mapping of the compiled pipeline with its location, so that an error can name the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.errors import UsageError

_LONGEST_NAME = 200
HINT = "docs/how-to/run-a-pipeline.md lists what is supported"


class InvalidPipeline(UsageError):
    """The pipeline is malformed, or uses what is not supported here."""

    code = "pipeline-refused"


class Part:
    """A mapping of the document, and its location."""

    def __init__(self, value: Any, location: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise InvalidPipeline(f"{location}: not a mapping", hint=HINT)
        self._value: dict[str, Any] = value
        self.location = location

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def names(self) -> list[str]:
        return [str(name) for name in self._value]

    def get(self, name: str, default: Any = None) -> Any:
        return self._value.get(name, default)

    def string(self, name: str) -> str:
        value = self._value.get(name)
        if not isinstance(value, str) or not value:
            raise self.error(name, "is missing, or not a string")
        return value

    def strings(self, name: str) -> list[str]:
        values = self._value.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.error(name, "is not a list of strings")
        return values

    def part(self, name: str) -> Part:
        return Part(self._value.get(name), f"{self.location}.{name}" if self.location else name)

    def parts(self, name: str) -> Iterator[tuple[str, Part]]:
        """The members of the mapping `name`, with their keys. Keys name files: they must not lead
        out of the directory of a run, nor into a terminal."""
        inner = self.part(name)
        for key in inner.names():
            if not 0 < len(key) < _LONGEST_NAME or "/" in key or not key.isprintable():
                raise inner.error(repr(key[:_LONGEST_NAME]), "is not a name")
            if key in (".", ".."):
                raise inner.error(key, "is not a name")
            yield key, inner.part(key)

    def allow_only(self, *names: str) -> None:
        """Refuse other members: ignoring them silently would change what the pipeline does."""
        for name in self._value:
            if name not in names:
                raise self.error(str(name), "is not supported")

    def error(self, name: str, why: str) -> InvalidPipeline:
        location = f"{self.location}.{name}" if self.location and name else self.location or name
        return InvalidPipeline(f"{location}: {why}", hint=HINT)

"""A document with the way to each of its parts, so that a refusal can name the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.errors import UsageError


class InvalidPipeline(UsageError):
    """The pipeline asks for what cannot be done here, or is malformed."""

    code = "pipeline-refused"


class Part:
    """A mapping of the document, and where it stands."""

    def __init__(self, value: Any, place: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise InvalidPipeline(f"{place}: a mapping is needed here", hint=HINT)
        self._value: dict[str, Any] = value
        self.place = place

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def names(self) -> list[str]:
        return [str(name) for name in self._value]

    def get(self, name: str, default: Any = None) -> Any:
        return self._value.get(name, default)

    def text(self, name: str) -> str:
        found = self._value.get(name)
        if not isinstance(found, str) or not found:
            raise self.refused(name, "is missing, or no text")
        return found

    def words(self, name: str) -> list[str]:
        found = self._value.get(name) or []
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise self.refused(name, "is no list of texts")
        return found

    def part(self, name: str) -> Part:
        return Part(self._value.get(name), f"{self.place}.{name}" if self.place else name)

    def parts(self, name: str) -> Iterator[tuple[str, Part]]:
        """The members of the mapping called `name`, each with its own name."""
        inside = self.part(name)
        for key in inside.names():
            yield key, inside.part(key)

    def only(self, *names: str) -> None:
        """Refuse whatever else stands here: it would be left out silently."""
        for name in self._value:
            if name not in names:
                raise self.refused(str(name), "is not supported")

    def refused(self, name: str, why: str) -> InvalidPipeline:
        place = f"{self.place}.{name}" if self.place and name else self.place or name
        return InvalidPipeline(f"{place}: {why}", hint=HINT)


HINT = "docs/how-to/run-a-pipeline.md says what runs here"

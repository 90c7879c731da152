"""YAML from strangers, as the JSON it stands for.

It is built from the parser's events, one by one, so that a text that is small and stands for
something huge (aliases of aliases, brackets in brackets) is refused while it is read, and other
requests are answered meanwhile. Dates stay the texts they are written as: JSON has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import yaml

from clew.errors import UsageError
from clew.server.parsing.nesting_limit import DEEPEST

MOST_NODES = 500_000
MOST_TEXT = 64 << 20
"""Characters of all scalars, with those that aliases repeat."""

_TAG = "tag:yaml.org,2002:"
_SCALARS = {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}
_TEXTS = {f"{_TAG}{name}" for name in ("str", "timestamp", "value", "merge")}
_COLLECTIONS = {None, "!", f"{_TAG}map", f"{_TAG}seq"}
_HINT = "compile it with the kfp SDK"


def documents(text: str) -> list[Any]:
    """All documents of a text that are not empty."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = _Building().all(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        raise UsageError(f"it is no YAML: {error}", hint=_HINT) from error
    return [one for one in found if one is not None]


class _Open:
    """A collection that is not closed yet: its members, keys and values in turn for a mapping."""

    def __init__(self, event: Any, cost: tuple[int, int]) -> None:
        self.anchor = event.anchor
        self.mapping = isinstance(event, yaml.MappingStartEvent)
        self.members: list[Any] = []
        self.before = cost
        self.depth = 1
        """Of it and what is in it."""

    def value(self) -> Any:
        if not self.mapping:
            return self.members
        found: dict[str, Any] = {}
        for key, value in zip(self.members[::2], self.members[1::2], strict=True):
            if key is _MERGE:
                for one in value if isinstance(value, list) else [value]:
                    if not isinstance(one, dict):
                        raise UsageError("<< merges something that is no mapping", hint=_HINT)
                    found = {**one, **found}
            else:
                found[key] = value
        return found


_MERGE = object()


class _Building:
    def __init__(self) -> None:
        self._nodes = 0
        self._text = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int, int]] = {}
        self._loader = yaml.SafeLoader("")  # knows what a plain scalar stands for
        self._resolve: Callable[..., object] = self._loader.resolve
        self._root: list[Any] = []

    def all(self, events: Any) -> list[Any]:
        found: list[Any] = []
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self._root = []
            elif isinstance(event, yaml.DocumentEndEvent):
                found += self._root
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(str(event.anchor))
            elif isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
        return found

    def _begin(self, event: Any) -> None:
        if event.tag not in _COLLECTIONS:
            raise UsageError(f"the tag {event.tag} is not taken", hint=_HINT)
        if self._is_key():
            raise UsageError("a key is no text", hint=_HINT)
        self._go_down(1)
        self._open.append(_Open(event, (self._nodes, self._text)))
        self._count(1, 0)

    def _end(self) -> None:
        closed = self._open.pop()
        value = closed.value()
        nodes, text = self._nodes - closed.before[0], self._text - closed.before[1]
        self._add(value, closed.depth)
        if closed.anchor is not None:
            self._anchors[closed.anchor] = (value, nodes, text, closed.depth)

    def _alias(self, anchor: str) -> None:
        if anchor not in self._anchors:
            raise UsageError(f"*{anchor} stands for nothing, or for itself", hint=_HINT)
        value, nodes, text, depth = self._anchors[anchor]
        if self._is_key() and not isinstance(value, str):
            raise UsageError("a key is no text", hint=_HINT)
        self._count(nodes, text)
        self._go_down(depth)
        self._add(value, depth)

    def _scalar(self, event: Any) -> None:
        self._count(1, len(event.value))
        value = self._key(event) if self._is_key() else self._value(event)
        self._add(value, 0)
        if event.anchor is not None:
            kept = event.value if value is _MERGE else value
            self._anchors[event.anchor] = (kept, 1, len(event.value), 0)

    def _key(self, event: Any) -> Any:
        return _MERGE if self._tag(event) == f"{_TAG}merge" else event.value

    def _value(self, event: Any) -> Any:
        tag = self._tag(event)
        if tag in _TEXTS:
            return event.value
        if tag not in _SCALARS:
            raise UsageError(f"the tag {tag} is not taken", hint=_HINT)
        try:
            found = self._loader.construct_object(yaml.ScalarNode(tag, event.value))
        except ValueError as error:
            raise UsageError(f"{event.value[:80]!r} is no number", hint=_HINT) from error
        if isinstance(found, float) and not math.isfinite(found):
            raise UsageError(f"{event.value!r} is no number that JSON knows", hint=_HINT)
        return found

    def _tag(self, event: Any) -> str:
        if event.tag not in (None, "!"):
            return str(event.tag)
        return str(self._resolve(yaml.ScalarNode, event.value, event.implicit))

    def _is_key(self) -> bool:
        return bool(self._open) and self._open[-1].mapping and len(self._open[-1].members) % 2 == 0

    def _add(self, value: Any, depth: int) -> None:
        if not self._open:
            self._root.append(value)
            return
        self._open[-1].members.append(value)
        self._open[-1].depth = max(self._open[-1].depth, depth + 1)

    def _go_down(self, depth: int) -> None:
        if len(self._open) + depth > DEEPEST:
            raise UsageError(f"it is nested more than {DEEPEST} deep", hint=_HINT)

    def _count(self, nodes: int, text: int) -> None:
        self._nodes += nodes
        self._text += text
        if self._nodes > MOST_NODES or self._text > MOST_TEXT:
            raise UsageError("it stands for more than a pipeline can be", hint=_HINT)

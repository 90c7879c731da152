"""Parse untrusted YAML and JSON, with limits on size and depth.

YAML is built from the parser's events, so that a small text that expands to something huge (aliases
of aliases, brackets in brackets) is an error before it fills the memory or the stack. The result is
JSON data: keys are strings, and dates stay strings.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from clew.errors import UsageError

if TYPE_CHECKING:
    import yaml

MAX_DEPTH = 100
MAX_NODES = 500_000
MAX_CHARACTERS = 64 << 20
"""Characters of all scalars of a YAML text, counted again for each alias."""

_JSON_SEPARATOR = "\n---\n"
_TAG = "tag:yaml.org,2002:"
_SCALARS = {f"{_TAG}{name}" for name in ("null", "bool", "int", "float")}
_TEXTS = {f"{_TAG}{name}" for name in ("str", "timestamp", "value", "merge")}
_COLLECTIONS = {None, "!", f"{_TAG}map", f"{_TAG}seq"}
_MERGE = object()
"""The key `<<`."""


def load_documents(text: str) -> list[Any]:
    """The documents of a YAML text that are not empty. JSON documents may be separated by `---`;
    they are read as JSON, which is faster, and exact for numbers that YAML takes for strings."""
    if text.lstrip()[:1] == "{":
        try:
            return [_decode_json(part, "it") for part in text.split(_JSON_SEPARATOR)]
        except (msgspec.DecodeError, UnicodeError):  # YAML may begin with a brace as well
            pass
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = _YamlBuilder().build(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        raise UsageError(f"not valid YAML: {error}") from error
    return [document for document in documents if document is not None]


def load_json(text: bytes | str, name: str) -> Any:
    """The value of a JSON text, which error messages call `name`."""
    try:
        return _decode_json(text, name)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(f"{name} is not valid JSON: {error}") from error


def _decode_json(text: bytes | str, name: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except RecursionError as error:
        raise UsageError(f"{name} is nested more than {MAX_DEPTH} levels deep") from error
    check_depth(value, name)
    return value


def check_depth(value: Any, name: str) -> None:
    """Raise UsageError if `value` is nested too deeply: what is stored must be readable again."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        members = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for several in members for one in several if isinstance(one, (dict, list))]
        if not level:
            return
    raise UsageError(f"{name} is nested more than {MAX_DEPTH} levels deep")


class _OpenCollection:
    """A collection before its end event: its members; of a mapping, keys and values in turn."""

    def __init__(self, anchor: str | None, *, is_mapping: bool, cost: tuple[int, int]) -> None:
        self.anchor = anchor
        self.is_mapping = is_mapping
        self.members: list[Any] = []
        self.cost_before = cost
        self.depth = 1
        """The depth of the collection with its members."""

    def value(self) -> Any:
        if not self.is_mapping:
            return self.members
        mapping: dict[str, Any] = {}
        for key, value in zip(self.members[::2], self.members[1::2], strict=True):
            if key is _MERGE:
                for merged in value if isinstance(value, list) else [value]:
                    if not isinstance(merged, dict):
                        raise UsageError("<< merges something that is not a mapping")
                    mapping = {**merged, **mapping}
            else:
                mapping[key] = value
        return mapping


class _YamlBuilder:
    def __init__(self) -> None:
        import yaml

        self._yaml = yaml
        self._nodes = 0
        self._characters = 0
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Any, int, int, int]] = {}
        """By name: the value, and its nodes, characters and depth."""
        self._loader: Any = yaml.SafeLoader("")  # resolves plain scalars
        self._root: list[Any] = []

    def build(self, events: Any) -> list[Any]:
        yaml = self._yaml
        documents: list[Any] = []
        for event in events:  # the most frequent first
            if isinstance(event, yaml.ScalarEvent):
                self._add_scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin_collection(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end_collection()
            elif isinstance(event, yaml.AliasEvent):
                self._add_alias(str(event.anchor))
            elif isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                self._root = []
            elif isinstance(event, yaml.DocumentEndEvent):
                documents += self._root
        return documents

    def _begin_collection(self, event: yaml.CollectionStartEvent) -> None:
        if event.tag not in _COLLECTIONS:
            raise UsageError(f"the tag {event.tag} is not supported")
        if self._expects_key():
            raise UsageError("a key is not a string")
        self._check_depth(1)
        is_mapping = isinstance(event, self._yaml.MappingStartEvent)
        cost = (self._nodes, self._characters)
        self._open.append(_OpenCollection(event.anchor, is_mapping=is_mapping, cost=cost))
        self._count(1, 0)

    def _end_collection(self) -> None:
        closed = self._open.pop()
        value = closed.value()
        nodes_before, characters_before = closed.cost_before
        self._add(value, closed.depth)
        if closed.anchor is not None:
            nodes, characters = self._nodes - nodes_before, self._characters - characters_before
            self._anchors[closed.anchor] = (value, nodes, characters, closed.depth)

    def _add_alias(self, anchor: str) -> None:
        if anchor not in self._anchors:
            raise UsageError(f"*{anchor} refers to nothing, or to itself")
        value, nodes, characters, depth = self._anchors[anchor]
        if self._expects_key() and not isinstance(value, str):
            raise UsageError("a key is not a string")
        self._count(nodes, characters)
        self._check_depth(depth)
        self._add(value, depth)

    def _add_scalar(self, event: yaml.ScalarEvent) -> None:
        self._count(1, len(event.value))
        value = self._key(event) if self._expects_key() else self._value(event)
        self._add(value, 0)
        if event.anchor is not None:
            anchored = event.value if value is _MERGE else value
            self._anchors[event.anchor] = (anchored, 1, len(event.value), 0)

    def _key(self, event: yaml.ScalarEvent) -> Any:
        if event.tag is None and event.value != "<<":  # no other plain text means a merge
            return event.value
        return _MERGE if self._tag(event) == f"{_TAG}merge" else event.value

    def _value(self, event: yaml.ScalarEvent) -> Any:
        tag = self._tag(event)
        if tag in _TEXTS:
            return event.value
        if tag not in _SCALARS:
            raise UsageError(f"the tag {tag} is not supported")
        try:
            value = self._loader.construct_object(self._yaml.ScalarNode(tag, event.value))
        except ValueError as error:
            raise UsageError(f"{event.value[:80]!r} is not a number") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{event.value!r} is not a number in JSON")
        return value

    def _tag(self, event: yaml.ScalarEvent) -> str:
        if event.tag not in (None, "!"):
            return str(event.tag)
        return str(self._loader.resolve(self._yaml.ScalarNode, event.value, event.implicit))

    def _expects_key(self) -> bool:
        return (
            bool(self._open) and self._open[-1].is_mapping and len(self._open[-1].members) % 2 == 0
        )

    def _add(self, value: Any, depth: int) -> None:
        if not self._open:
            self._root.append(value)
            return
        self._open[-1].members.append(value)
        self._open[-1].depth = max(self._open[-1].depth, depth + 1)

    def _check_depth(self, depth: int) -> None:
        if len(self._open) + depth > MAX_DEPTH:
            raise UsageError(f"it is nested more than {MAX_DEPTH} levels deep")

    def _count(self, nodes: int, characters: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MAX_NODES or self._characters > MAX_CHARACTERS:
            raise UsageError("it expands to more than a document may hold")

"""Parameter values and their types.

The IR writes every number as a double. So a number without a fraction becomes an integer, at any
depth of a list or structure, as on a cluster. Otherwise types are never guessed.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

Artifact = dict[str, Any]
"""As in the SDK's executor input: name, uri, type, metadata."""


class Values(Struct):
    """Inputs or outputs of a task. Those without a value are left out."""

    parameters: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, list[Artifact]] = field(default_factory=dict)


class WrongType(ValueError):
    """The value is not of the parameter's type."""


def normalize_numbers(value: Any) -> Any:
    """Convert integral doubles to integers, at any depth."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [normalize_numbers(one) for one in value]
    if isinstance(value, dict):
        return {str(name): normalize_numbers(one) for name, one in value.items()}
    return value


def to_text(value: Any) -> str:
    """A value as part of a text: a string unchanged, everything else as JSON."""
    return (
        value
        if isinstance(value, str)
        else json.dumps(normalize_numbers(value), ensure_ascii=False)
    )


def convert(value: Any, kind: str, literals: Sequence[Any] = ()) -> Any:
    """Convert to the type `kind`, and check that it is one of the `literals`, if there are any.
    Raises WrongType."""
    converted = _convert(value, kind)
    if literals and converted is not None and converted not in literals:
        raise WrongType(f"{_shorten(value)} is not one of {', '.join(map(repr, literals))}")
    return converted


def _convert(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "STRING":
        return to_text(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "NUMBER_INTEGER" and number and float(value).is_integer():
        return int(value)
    if kind == "NUMBER_DOUBLE" and number:
        return float(value)
    if isinstance(value, _TYPES[kind][1]):
        return normalize_numbers(value)
    if isinstance(value, str) and kind in ("LIST", "STRUCT"):
        return _convert(_parse_json(value, kind), kind)
    raise WrongType(f"{_shorten(value)} is not {_TYPES[kind][0]}")


def parse_value(text: str, kind: str, literals: Sequence[Any] = ()) -> Any:
    """Parse what a user typed for a parameter of this type."""
    return convert(_parse_text(text, kind), kind, literals)


def _parse_text(text: str, kind: str) -> Any:
    if kind == "STRING":
        return text
    if kind == "BOOLEAN":
        value = {"true": True, "false": False}.get(text.lower())
        if value is None:
            raise WrongType(f"{_shorten(text)} is neither true nor false")
        return value
    return _parse_json(text, kind)


def _parse_json(text: str, kind: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise WrongType(f"{_shorten(text)} is not {_TYPES[kind][0]}") from error


_TYPES: dict[str, tuple[str, Any]] = {  # how messages call it, and its type in JSON
    "NUMBER_INTEGER": ("an integer", ()),
    "NUMBER_DOUBLE": ("a number", ()),
    "BOOLEAN": ("a boolean", bool),
    "LIST": ("a list", list | tuple),
    "STRUCT": ("a structure", dict),
    "TASK_FINAL_STATUS": ("a final status", dict),
    "TASK_CONFIG": ("a task configuration", dict),
}
TYPES = ("STRING", *_TYPES)


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"

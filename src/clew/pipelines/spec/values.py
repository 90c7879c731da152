"""Parameter values and their types: an int stays an int, and nothing is guessed.

The IR writes every number as a double. So a number without a fraction is written as an integer,
at any depth of a list or structure, as a cluster does it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

NUMBERS = ("NUMBER_INTEGER", "NUMBER_DOUBLE")
TYPES = (*NUMBERS, "STRING", "BOOLEAN", "LIST", "STRUCT", "TASK_FINAL_STATUS", "TASK_CONFIG")


class WrongType(ValueError):
    """The value is not of the parameter's type."""


def normalize_numbers(value: Any) -> Any:
    """The value with integral doubles as integers, at any depth."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [normalize_numbers(one) for one in value]
    if isinstance(value, dict):
        return {str(name): normalize_numbers(one) for name, one in value.items()}
    return value


def to_text(value: Any) -> str:
    """A value inside a text: a string as it is, all else as JSON."""
    return (
        value
        if isinstance(value, str)
        else json.dumps(normalize_numbers(value), ensure_ascii=False)
    )


def convert(value: Any, kind: str, literals: Sequence[Any] = ()) -> Any:
    """`value` as one of the type `kind`, and one of the `literals` if there are any; WrongType
    where it is none."""
    found = _convert(value, kind)
    if literals and found is not None and found not in literals:
        raise WrongType(f"{_shorten(value)} is none of {', '.join(map(repr, literals))}")
    return found


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
    wanted = _JSON_TYPES.get(kind)
    if wanted is not None and isinstance(value, wanted):
        return normalize_numbers(value)
    if isinstance(value, str) and kind in ("LIST", "STRUCT"):
        return _convert(_parse_json(value, kind), kind)
    raise WrongType(f"{_shorten(value)} is no {_TYPE_NAMES.get(kind, kind)}")


def parse_value(words: str, kind: str, literals: Sequence[Any] = ()) -> Any:
    """What a user typed for a parameter of this type."""
    return convert(_parse_text(words, kind), kind, literals)


def _parse_text(words: str, kind: str) -> Any:
    if kind == "STRING":
        return words
    if kind == "BOOLEAN":
        said = {"true": True, "false": False}.get(words.lower())
        if said is None:
            raise WrongType(f"{_shorten(words)} is neither true nor false")
        return said
    return _parse_json(words, kind)


def _parse_json(words: str, kind: str) -> Any:
    try:
        return json.loads(words)
    except ValueError as error:
        raise WrongType(f"{_shorten(words)} is no {_TYPE_NAMES.get(kind, kind)}") from error


_JSON_TYPES: dict[str, Any] = {
    "BOOLEAN": bool,
    "LIST": list | tuple,
    "STRUCT": dict,
    "TASK_FINAL_STATUS": dict,
    "TASK_CONFIG": dict,
}
_TYPE_NAMES = {
    "NUMBER_INTEGER": "integer",
    "NUMBER_DOUBLE": "number",
    "BOOLEAN": "boolean",
    "LIST": "list",
    "STRUCT": "structure",
    "TASK_FINAL_STATUS": "final status",
    "TASK_CONFIG": "task configuration",
}


def _shorten(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"

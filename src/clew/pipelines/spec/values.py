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


def tidy(value: Any) -> Any:
    """The value with integral doubles as integers, at any depth."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [tidy(one) for one in value]
    if isinstance(value, dict):
        return {str(name): tidy(one) for name, one in value.items()}
    return value


def text(value: Any) -> str:
    """A value inside a text: a string as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(tidy(value), ensure_ascii=False)


def typed(value: Any, kind: str, literals: Sequence[Any] = ()) -> Any:
    """`value` as one of the type `kind`, and one of the `literals` if there are any; WrongType
    where it is none."""
    found = _typed(value, kind)
    if literals and found is not None and found not in literals:
        raise WrongType(f"{_short(value)} is none of {', '.join(map(repr, literals))}")
    return found


def _typed(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "STRING":
        return text(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "NUMBER_INTEGER" and number and float(value).is_integer():
        return int(value)
    if kind == "NUMBER_DOUBLE" and number:
        return float(value)
    wanted = _PLAIN.get(kind)
    if wanted is not None and isinstance(value, wanted):
        return tidy(value)
    if isinstance(value, str) and kind in ("LIST", "STRUCT"):
        return _typed(_json(value, kind), kind)
    raise WrongType(f"{_short(value)} is no {_WORDS.get(kind, kind)}")


def given(words: str, kind: str, literals: Sequence[Any] = ()) -> Any:
    """What a user typed for a parameter of this type."""
    return typed(_given(words, kind), kind, literals)


def _given(words: str, kind: str) -> Any:
    if kind == "STRING":
        return words
    if kind == "BOOLEAN":
        said = {"true": True, "false": False}.get(words.lower())
        if said is None:
            raise WrongType(f"{_short(words)} is neither true nor false")
        return said
    return _json(words, kind)


def _json(words: str, kind: str) -> Any:
    try:
        return json.loads(words)
    except ValueError as error:
        raise WrongType(f"{_short(words)} is no {_WORDS.get(kind, kind)}") from error


_PLAIN: dict[str, Any] = {
    "BOOLEAN": bool,
    "LIST": list | tuple,
    "STRUCT": dict,
    "TASK_FINAL_STATUS": dict,
    "TASK_CONFIG": dict,
}
_WORDS = {
    "NUMBER_INTEGER": "integer",
    "NUMBER_DOUBLE": "number",
    "BOOLEAN": "boolean",
    "LIST": "list",
    "STRUCT": "structure",
    "TASK_FINAL_STATUS": "final status",
    "TASK_CONFIG": "task configuration",
}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"

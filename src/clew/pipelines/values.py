"""Parameter values and their types: an int stays an int, and nothing is guessed.

The IR writes every number as a double. So a number without a fraction is written as an integer,
at any depth of a list or structure, as a cluster does it.
"""

from __future__ import annotations

import json
import math
from typing import Any

NUMBERS = ("NUMBER_INTEGER", "NUMBER_DOUBLE")
TYPES = (*NUMBERS, "STRING", "BOOLEAN", "LIST", "STRUCT", "TASK_FINAL_STATUS")


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


def typed(value: Any, kind: str) -> Any:
    """`value` as one of the type `kind`; WrongType where it is none."""
    if value is None:
        return None
    if kind == "STRING":
        return text(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "NUMBER_INTEGER" and number and float(value).is_integer():
        return int(value)
    if kind == "NUMBER_DOUBLE" and number:
        return float(value)
    plain = {"BOOLEAN": bool, "LIST": list | tuple, "STRUCT": dict, "TASK_FINAL_STATUS": dict}
    wanted = plain.get(kind)
    if wanted is not None and isinstance(value, wanted):
        return tidy(value)
    if isinstance(value, str) and kind in ("LIST", "STRUCT"):
        return typed(_json(value, kind), kind)
    raise WrongType(f"{_short(value)} is no {_WORDS.get(kind, kind)}")


def given(words: str, kind: str) -> Any:
    """What a user typed for a parameter of this type."""
    if kind == "STRING":
        return words
    if kind == "BOOLEAN":
        said = {"true": True, "false": False}.get(words.lower())
        if said is None:
            raise WrongType(f"{_short(words)} is neither true nor false")
        return said
    return typed(_json(words, kind), kind)


def _json(words: str, kind: str) -> Any:
    try:
        return json.loads(words)
    except ValueError as error:
        raise WrongType(f"{_short(words)} is no {_WORDS.get(kind, kind)}") from error


_WORDS = {
    "NUMBER_INTEGER": "integer",
    "NUMBER_DOUBLE": "number",
    "BOOLEAN": "boolean",
    "LIST": "list",
    "STRUCT": "structure",
    "TASK_FINAL_STATUS": "final status",
}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"

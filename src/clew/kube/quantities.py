"""Quantities of Kubernetes, such as `500m` and `2Gi`."""

import re
from typing import Any

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d+|[a-zA-Z]*)")
_SUFFIXES = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "P": 1e15, "E": 1e18, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
    "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity."""


def parse_quantity(value: Any) -> float:
    """`500m`, `2Gi`, `1e3`, `4` as a number."""
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is not None and match[2] in _SUFFIXES:
        return float(match[1]) * _SUFFIXES[match[2]]
    if match is None or not match[2][-1].isdigit():
        raise InvalidQuantity(f"{value!r} is not a quantity like 500m or 2Gi")
    return float(match[0])

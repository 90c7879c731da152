"""Kubernetes quantities, such as `500m`, `1.5Gi` and `2e3`: parse, multiply and format them.

Exact decimal numbers: as floats, `0.1` and `100m` would not always be the same.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

_TEXT = re.compile(r"([+-]?(?:\d{1,19}(?:\.\d{0,19})?|\.\d{1,19}))([eE][+-]?\d{1,2}|[a-zA-Z]{0,2})")
_UNITS: dict[str, Decimal] = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"),
    "P": Decimal("1e15"), "E": Decimal("1e18"),
    **{f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)},
}  # fmt: skip

_LARGE = Context(prec=500)
"""Enough for the product of the largest numbers."""


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity."""


class Quantity(NamedTuple):
    """A number and the unit that it was written with."""

    value: Decimal
    """In units of one: bytes, or whole CPUs."""
    suffix: str

    def times(self, factor: Decimal) -> "Quantity":
        """The product, with at most one digit after the point, as Kubeflow rounds limits."""
        unit = _UNITS[self.suffix]
        exact = self.value * factor / unit
        rounded = exact.quantize(Decimal("0.1"), ROUND_HALF_UP, _LARGE)
        return Quantity(rounded * unit, self.suffix)

    def __str__(self) -> str:
        return f"{(self.value / _UNITS[self.suffix]).normalize():f}{self.suffix}"


def parse_quantity(value: object) -> Quantity:
    """Parse a number or a text. The `K` of the KFP SDK is the `k` of Kubernetes."""
    is_text = isinstance(value, int | float | str) and not isinstance(value, bool)
    match = _TEXT.fullmatch(str(value).strip()) if is_text else None
    if match is not None:
        number, suffix = Decimal(match[1]), "k" if match[2] == "K" else match[2]
        if suffix in _UNITS:
            return Quantity(number * _UNITS[suffix], suffix)
        if suffix[-1].isdigit():
            return Quantity(number.scaleb(int(suffix[1:])), "")
    raise InvalidQuantity(f"{str(value)[:40]!r} is not a quantity like 500m or 2Gi")

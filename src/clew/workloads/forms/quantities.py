"""Kubernetes quantities, such as `500m`, `1.5Gi` and `2e3`: parse, multiply and format them.

Exact decimal numbers: as floats, `0.1` and `100m` would not always be the same.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from clew.errors import UsageError

_TEXT = re.compile(r"([+-]?(?:\d{1,19}(?:\.\d{0,19})?|\.\d{1,19}))([eE][+-]?\d{1,2}|[a-zA-Z]{0,2})")
_FACTORS: dict[str, Decimal] = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"),
    "P": Decimal("1e15"), "E": Decimal("1e18"),
    **{f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)},
}  # fmt: skip

_LARGE = Context(prec=500)
"""Enough for the product of the largest numbers."""


class Quantity(NamedTuple):
    """A number and the unit that it was written with."""

    value: Decimal
    """In units of one: bytes, or whole CPUs."""
    suffix: str

    def times(self, factor: Decimal) -> "Quantity":
        """The product, with at most one digit after the point, as Kubeflow rounds limits."""
        unit = _unit(self.suffix)
        exact = self.value * factor / unit
        rounded = exact.quantize(Decimal("0.1"), ROUND_HALF_UP, _LARGE)
        return Quantity(rounded * unit, self.suffix)

    def __str__(self) -> str:
        number = f"{(self.value / _unit(self.suffix)).normalize():f}"
        return f"{number}{self.suffix}"


def parse_quantity(text: object, what: str) -> Quantity:
    """Parse a number or a text. `what` is named in the error."""
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise _invalid(text, what)
    match = _TEXT.fullmatch(str(text).strip())
    if match is None or (match[2] and match[2] not in _FACTORS and match[2][0] not in "eE"):
        raise _invalid(text, what)
    number, suffix = Decimal(match[1]), match[2]
    if suffix in _FACTORS:
        return Quantity(number * _FACTORS[suffix], suffix)
    if len(suffix) == 1:  # `e` alone, while `E` is a unit
        raise _invalid(text, what)
    return Quantity(number.scaleb(int(suffix[1:])), "")


def parse_positive(text: object, what: str) -> Quantity:
    found = parse_quantity(text, what)
    if found.value <= 0:
        raise UsageError(f"{what} must be more than zero, not {str(text)[:40]}")
    return found


def _unit(suffix: str) -> Decimal:
    return _FACTORS.get(suffix, Decimal(1))


def _invalid(text: object, what: str) -> UsageError:
    return UsageError(
        f"{what} is not a quantity: {str(text)[:40]!r}",
        hint="write a number with a unit if needed: 0.5, 500m, 512Mi, 1.5Gi",
    )

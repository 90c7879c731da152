"""Quantities in forms: as `kube.quantities` parses them, with errors that name the field."""

from clew.errors import UsageError
from clew.kube import quantities
from clew.kube.quantities import InvalidQuantity, Quantity


def parse_quantity(text: object, what: str) -> Quantity:
    """Parse a number or a text. `what` is named in the error."""
    try:
        return quantities.parse_quantity(text)
    except InvalidQuantity as error:
        raise UsageError(
            f"{what} is not a quantity: {str(text)[:40]!r}",
            hint="write a number with a unit if needed: 0.5, 500m, 512Mi, 1.5Gi",
        ) from error


def parse_positive(text: object, what: str) -> Quantity:
    found = parse_quantity(text, what)
    if found.value <= 0:
        raise UsageError(f"{what} must be more than zero, not {str(text)[:40]}")
    return found

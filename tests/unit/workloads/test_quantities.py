"""Kubernetes quantities."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.workloads.forms.quantities import parse_positive, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", "1"), ("0.5", "0.5"), (".5", "0.5"), ("500m", "0.5"), ("1k", "1000"), ("1Ki", "1024"),
        ("1.5Gi", "1610612736"), ("2e3", "2000"), ("2E3", "2000"), ("1E", "1e18"), ("100u", "1e-4"),
        (2, "2"), (0.1, "0.1"), (" 1Gi ", "1073741824"), ("-1", "-1"), ("2K", "2000"),
    ],
)  # fmt: skip
def test_values(text: object, value: str) -> None:
    assert parse_quantity(text, "it").value == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "many",
        "1GiB",
        "1 Gi",
        "1e",
        "0x10",
        "1Q",
        "--1",
        "1.2.3",
        "1 2",
        "m",
        None,
        True,
        [],
        {},
        "∞",
    ],
)
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(UsageError, match="it is not a quantity"):
        parse_quantity(text, "it")


@pytest.mark.parametrize("text", ["0", "-1", "0Gi", "-0.5"])
def test_sizes_are_more_than_zero(text: str) -> None:
    with pytest.raises(UsageError, match="more than zero"):
        parse_positive(text, "it")


@given(
    number=st.decimals("0.001", "100000", places=3),
    suffix=st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]),
    factor=st.decimals("1", "4", places=1),
)
def test_a_product_is_a_quantity_near_it(number: Decimal, suffix: str, factor: Decimal) -> None:
    found = parse_quantity(f"{number}{suffix}", "it")
    unit = parse_quantity(f"1{suffix}", "it").value
    product = found.times(factor)
    assert abs(product.value - found.value * factor) <= unit * Decimal("0.05")
    assert parse_quantity(str(product), "it").value == product.value


@given(st.text(max_size=12) | st.integers() | st.floats() | st.none())
def test_anything_is_a_quantity_or_an_error(text: object) -> None:
    try:
        found = parse_quantity(text, "it")
    except UsageError as error:
        assert error.hint
    else:
        assert found.value.is_finite()


@pytest.mark.parametrize("text", ["1e99", "1e-99", "9999999999999999999Ei"])
def test_no_number_is_too_large_for_a_product(text: str) -> None:
    found = parse_quantity(text, "it")
    assert found.times(Decimal("1e99")).value >= found.value

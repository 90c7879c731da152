"""Conditions are a small closed language: read, compared, and never run as code."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.pipelines.spec.conditions import CannotCompare, InvalidCondition, parse_condition

X = "inputs.parameter_values['x']"


def holds(text: str, **inputs: Any) -> bool:
    return parse_condition(text).holds(inputs)


@pytest.mark.parametrize(
    ("text", "x", "answer"),
    [
        (f"{X} == 'heads'", "heads", True),
        (f"{X} == 'heads'", "tails", False),
        (f"!({X} == 'heads')", "tails", True),
        (f"int({X}) > 3", 4, True),
        (f"int({X}) > 3", "3", False),
        (f"double({X}) <= 0.5", 0.5, True),
        (f"!({X} == 'a') && int({X}) >= -2", "-2", True),
        (f"!({X} == 'a') && {X} != 'b'", "b", False),
        (f"{X} == true", True, True),
        (f"{X} == true", "false", False),
        (f"{X} == 'true'", True, True),
        ("'a' == 'a'", None, True),
        ("1 < 2.5", None, True),
        (f"{X} == ''", "", True),
        (f"{X} == 'it's'", "it's", True),
        (f"{X} == 'a && b'", "a && b", True),
    ],
)
def test_answers(text: str, x: Any, answer: bool) -> None:
    assert holds(text, x=x) is answer


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="'")))
def test_a_value_is_never_read_as_part_of_the_condition(x: str, word: str) -> None:
    assert holds(f"{X} == '{word}'", x=x) is (x == word)


def test_a_value_that_looks_like_code_is_a_value() -> None:
    assert holds(f"{X} == 'secret'", x="zzz' or '1'=='1") is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        X,
        f"{X} ==",
        f"{X} == 'a' || {X} == 'b'",
        f"!{X} == 'a'",
        f"({X} == 'a'",
        f"__import__('os').getcwd() == {X}",
        f"int(double({X})) == 1",
        f"{X} == 'a' {X}",
    ],
)
def test_invalid_conditions(text: str) -> None:
    with pytest.raises(InvalidCondition):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "inputs"),
    [(f"{X} == 'a'", {}), (f"int({X}) == 1", {"x": "one"}), (f"{X} > 1", {"x": "2"})],
)
def test_values_that_cannot_be_compared(text: str, inputs: dict[str, Any]) -> None:
    with pytest.raises(CannotCompare):
        parse_condition(text).holds(inputs)

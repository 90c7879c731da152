"""Values keep their types: what the IR writes as a double is an integer where it was one."""

from typing import Any

import pytest

from clew.pipelines.spec.placeholders import MissingValue, fill, find_unknown
from clew.pipelines.spec.values import WrongType, convert, normalize_numbers, parse_value


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (5.0, "NUMBER_INTEGER", 5),
        (5, "NUMBER_DOUBLE", 5.0),
        ([1.0, {"a": 2.0, "b": 0.5}], "LIST", [1, {"a": 2, "b": 0.5}]),
        ("[1, 2]", "LIST", [1, 2]),
        ('{"a": 1}', "STRUCT", {"a": 1}),
        (3.0, "STRING", "3"),
        (True, "STRING", "true"),
        ([1.0], "STRING", "[1]"),
        (False, "BOOLEAN", False),
        (None, "NUMBER_INTEGER", None),
    ],
)
def test_convert(value: Any, kind: str, found: Any) -> None:
    answer = convert(value, kind)
    assert answer == found
    assert type(answer) is type(found)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0.5, "NUMBER_INTEGER"),
        (True, "NUMBER_INTEGER"),
        ("5", "NUMBER_INTEGER"),
        (1, "BOOLEAN"),
        ("a", "LIST"),
        ("[1]", "STRUCT"),
        ([], "STRUCT"),
    ],
)
def test_values_of_another_type(value: Any, kind: str) -> None:
    with pytest.raises(WrongType):
        convert(value, kind)


@pytest.mark.parametrize(
    ("words", "kind", "found"),
    [
        ("5", "STRING", "5"),
        ("5", "NUMBER_INTEGER", 5),
        ("0.5", "NUMBER_DOUBLE", 0.5),
        ("True", "BOOLEAN", True),
        ("[1, 2.0]", "LIST", [1, 2]),
    ],
)
def test_parse_value(words: str, kind: str, found: Any) -> None:
    assert parse_value(words, kind) == found


@pytest.mark.parametrize(("words", "kind"), [("x", "NUMBER_INTEGER"), ("1", "BOOLEAN")])
def test_invalid_texts(words: str, kind: str) -> None:
    with pytest.raises(WrongType):
        parse_value(words, kind)


def test_infinite_numbers_stay_as_they_are() -> None:
    assert normalize_numbers([float("inf"), 2.0]) == [float("inf"), 2]


def test_a_single_placeholder_keeps_its_type() -> None:
    values = {"n": 3, "words": ["a", 1]}
    files = {"m": [{"uri": "/there"}]}
    facts = {"pipeline_job_name": "job"}

    def filled(value: Any) -> Any:
        return fill(value, values, files, facts)

    assert filled("{{$.inputs.parameters['n']}}") == 3
    assert filled("n={{$.inputs.parameters['n']}}, {{$.inputs.parameters['words']}}") == (
        'n=3, ["a", 1]'
    )
    assert filled({"a": ["{{$.inputs.artifacts['m'].path}}", 1]}) == {"a": ["/there", 1]}
    assert filled("{{$.pipeline_job_name}}!") == "job!"
    with pytest.raises(MissingValue):
        filled("{{$.inputs.parameters['other']}}")


def test_an_unknown_placeholder_is_found_at_any_depth() -> None:
    assert find_unknown({"a": ["{{$.what_is_this}}/x"]}) == "{{$.what_is_this}}"
    assert find_unknown(["{{$.pipeline_task_name}}", "{{$.inputs.parameters['x']}}", 1]) is None

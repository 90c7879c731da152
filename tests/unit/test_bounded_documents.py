"""Untrusted YAML and JSON: read as the libraries read them, and bounded."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clew.bounded_documents import MAX_DEPTH, check_depth, load_documents, load_json
from clew.errors import UsageError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def library(text: str) -> list[Any]:
    found = yaml.load_all(text, Loader=yaml.CSafeLoader)
    return [one for one in found if one is not None]


@given(VALUES, st.booleans())
def test_it_is_read_as_the_library_reads_it(value: Any, flow: bool) -> None:
    written = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    assert load_documents(written) == library(written)


@given(st.lists(VALUES, min_size=1, max_size=3))
def test_documents_stand_apart(values: list[Any]) -> None:
    written = yaml.safe_dump_all(values)
    assert load_documents(written) == library(written)


@pytest.mark.parametrize(
    "text",
    [
        "a: 0x1F\nb: 0o17\nc: 1_000\nd: 0b11",
        "a: yes\nb: off\nc: ~\nd: null\ne:",
        "a: !!str 1\nb: !!int '2'\nc: '3'\nd: \"4\"",
        "a: |\n  one\n  two\nb: >-\n  three\n  four",
        "base: &b {x: 1, y: 2}\nmade: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}",
        "one: &a [1, 2]\ntwo: *a",
        "? a\n: b",
        "&k key: 1\nb: {*k : 2}",
    ],
)
def test_it_means_what_the_library_says(text: str) -> None:
    assert load_documents(text) == library(text)


def test_a_merge_can_have_a_name() -> None:
    assert load_documents("a: {&m <<: {x: 1}}\nb: *m") == [{"a": {"x": 1}, "b": "<<"}]


def test_a_text_at_the_depth_limit_is_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert load_documents(deep) == library(deep)


def test_json_documents_are_read_as_json() -> None:
    assert load_documents('{"a": 1e3}\n---\n{"b": "2030-01-31"}') == [
        {"a": 1000.0},
        {"b": "2030-01-31"},
    ]
    assert load_documents("{a: 1}") == [{"a": 1}]


def nested(depth: int, kind: type) -> Any:
    value: Any = kind()
    for _ in range(depth - 1):
        value = [value] if kind is list else {"in": value, "beside": 1}
    return value


@pytest.mark.parametrize("kind", [list, dict])
def test_values_deeper_than_the_limit_are_refused(kind: type) -> None:
    check_depth(nested(MAX_DEPTH, kind), "it")
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(UsageError, match="it is nested"):
            check_depth(nested(depth, kind), "it")
    for value in (None, 1, "text", [], {}, [1, "a", None]):
        check_depth(value, "it")


@pytest.mark.parametrize(("text", "why"), [("[" * 100_000, "nested"), ("[", "not valid JSON")])
def test_bad_json_is_refused_by_its_name(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"the body is {why}"):
        load_json(text, "the body")


def test_dates_stay_as_they_are_written() -> None:
    assert load_documents("a: 2030-01-31\n2031-01-31: b") == [
        {"a": "2030-01-31", "2031-01-31": "b"}
    ]


def test_keys_are_strings() -> None:
    assert load_documents("1: a\ntrue: b\n~: c") == [{"1": "a", "true": "b", "~": "c"}]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


STAIRS = "s0: &s0 x\n" + "".join(
    f"s{step}: &s{step} {'[' * 60}*s{step - 1}{']' * 60}\n" for step in range(1, 4)
)
"""Each is deep, and what is deep in it is deep again."""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (BOMB, "more than"),
        ("[" * 100_000 + "]" * 100_000, "nested"),
        ("{a: " * 1000 + "1" + "}" * 1000, "nested"),
        (STAIRS, "nested"),
        ("a: &a {b: 1}\nc: {*a : 2}", "key"),
        ("a: &a [*a]", "itself"),
        ("a: *b", "nothing"),
        ("--- &a 1\n--- *a", "nothing"),
        ("a: !!python/object/apply:os.system [echo]", "tag"),
        ("a: !!binary aGk=", "tag"),
        ("a: !mine b", "tag"),
        ("a: .nan", "JSON"),
        ("a: -.inf", "JSON"),
        ("a: !!int x", "number"),
        ("? [a]\n: b", "key"),
        ("a: {<<: 1}", "merge"),
        ("a: b: c", "YAML"),
        ("a: [", "YAML"),
        ("a: \x07", "YAML"),
        ("\t- a", "YAML"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load_documents(text)


def test_too_much_of_anything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.bounded_documents.MAX_NODES", 10_000)
    assert len(load_documents("- a\n" * 9_999)[0]) == 9_999
    with pytest.raises(UsageError, match="more than"):
        load_documents("- a\n" * 10_000)
    long = "x" * 1_000_000
    with pytest.raises(UsageError, match="more than"):
        load_documents(f"a: &a {long}\nb: [{', '.join(['*a'] * 70)}]")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        load_documents(text)
    except UsageError as refused:
        assert refused.message

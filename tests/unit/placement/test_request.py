"""What Pods ask, however they write it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.placement.request import (
    COST_MS,
    KINDS,
    LOCATIONS,
    MAX_MS,
    SPREAD_MS,
    parse_milliseconds,
    parse_request,
)

HOME = {"typeOfComponent": "Predict", "OurLocation": "HOME"}
ANNOTATIONS = (LOCATIONS, MAX_MS, SPREAD_MS, COST_MS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_that_answers_predictions_names_its_location(kind: str) -> None:
    request = parse_request({**HOME, "typeOfComponent": kind}, {})
    assert request is not None
    assert request.shares == (("HOME", 1.0),)
    assert (request.max_ms, request.spread_ms, request.cost_ms) == (None, 0, 0)


@pytest.mark.parametrize(
    "labels",
    [{}, {"OurLocation": "HOME"}, {"typeOfComponent": "Predict"}, {**HOME, "typeOfComponent": "X"}],
)
def test_other_pods_ask_nothing(labels: dict[str, str]) -> None:
    assert parse_request(labels, {MAX_MS: "20"}) is None


def test_annotations_say_more() -> None:
    given = {LOCATIONS: "A=7, B=3", MAX_MS: "20ms", SPREAD_MS: "5", COST_MS: ".5"}
    request = parse_request(HOME, given)
    assert request is not None
    assert dict(request.shares) == pytest.approx({"A": 0.7, "B": 0.3})
    assert (request.max_ms, request.spread_ms, request.cost_ms) == (20, 5, 0.5)
    assert not request.problems


def test_locations_without_shares_count_the_same() -> None:
    request = parse_request(HOME, {LOCATIONS: "A,B"})
    assert request is not None
    assert dict(request.shares) == {"A": 0.5, "B": 0.5}


@pytest.mark.parametrize(
    "text", ["A=x", "=1", "A=0", "A=-1", "A=nan", "A=inf", "A B=1", "A=1,", ""]
)
def test_locations_that_cannot_be_read_leave_the_label(text: str) -> None:
    request = parse_request(HOME, {LOCATIONS: text})
    assert request is not None
    assert request.shares == (("HOME", 1.0),)
    assert LOCATIONS in request.problems[0]


def test_too_many_locations_are_a_problem() -> None:
    request = parse_request(HOME, {LOCATIONS: ",".join(f"L{n}" for n in range(17))})
    assert request is not None
    assert request.problems


def test_a_limit_that_is_no_number_is_a_problem() -> None:
    request = parse_request(HOME, {MAX_MS: "soon"})
    assert request is not None
    assert request.max_ms is None
    assert request.problems == (f"{MAX_MS}: 'soon' is not a number of milliseconds",)


@given(st.text(), st.dictionaries(st.sampled_from(ANNOTATIONS), st.text()))
def test_any_text_gives_a_request_that_makes_sense(
    location: str, annotations: dict[str, str]
) -> None:
    request = parse_request({**HOME, "OurLocation": location}, annotations)
    if request is None:
        assert not location
        return
    assert bool(request.shares) or request.problems
    assert not request.shares or math.isclose(sum(share for _, share in request.shares), 1)
    numbers = (request.max_ms or 0, request.spread_ms, request.cost_ms)
    assert all(math.isfinite(number) and number >= 0 for number in numbers)


@pytest.mark.parametrize(
    ("text", "ms"), [("0.289", 0.289), ("0.8ms", 0.8), ("12", 12), (".5", 0.5), (" 3ms ", 3)]
)
def test_milliseconds(text: str, ms: float) -> None:
    assert parse_milliseconds(text) == ms


@pytest.mark.parametrize(
    "text", ["", "ms", "-1", "1s", "1e3", "0x1", "1_0", "nan", "inf", "1" * 10]
)
def test_what_is_no_number_of_milliseconds(text: str) -> None:
    assert parse_milliseconds(text) is None

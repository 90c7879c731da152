"""Which node is best, and what the others are worth."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.placement.decision import (
    BEST_SCORE,
    CANDIDATES,
    decide,
    find_within_limit,
    keep_nearest,
    score,
    sum_up,
)
from clew.placement.expected_latencies import ExpectedLatencies
from clew.placement.request import Request

latencies = st.dictionaries(st.text(max_size=3), st.floats(0.001, 20_000), min_size=1)
REQUEST = Request((("HOME", 1.0),))


def expected(known: dict[str, float]) -> ExpectedLatencies:
    return ExpectedLatencies(known, known, frozenset(known), ())


@given(latencies, st.lists(st.text(max_size=3)))
def test_the_best_node_alone_has_the_highest_score(
    totals: dict[str, float], others: list[str]
) -> None:
    nodes = list({*totals, *others})
    decision = decide("uid", nodes, totals, replicas={}, pods_on=lambda _: 0)
    best = min(totals.values())
    assert totals[decision.chosen] <= best * 1.01 + 0.02
    assert decision.scores.keys() == set(nodes)
    assert [n for n, s in decision.scores.items() if s == BEST_SCORE] == [decision.chosen]
    for a in totals.keys() - {decision.chosen}:
        for b in totals.keys() - {decision.chosen}:
            assert totals[a] > totals[b] or decision.scores[a] >= decision.scores[b]
    assert all(decision.scores[name] == 0 for name in nodes if name not in totals)
    if decision.next_best:
        rest = [ms for name, ms in totals.items() if name != decision.chosen]
        assert totals[decision.next_best] == min(rest)


@pytest.mark.parametrize(("excess", "expected"), [(0, 9), (10, 5), (300, 0), (1e9, 0)])
def test_scores_are_logarithmic(excess: float, expected: int) -> None:
    assert score(excess) == expected


@given(latencies, st.floats(0, 20_000))
def test_no_node_beyond_the_limit_is_left(known: dict[str, float], limit: float) -> None:
    nodes = [*known, "unknown node"]
    within, beyond = find_within_limit(expected(known), limit, nodes)
    assert sorted([*within, *beyond]) == sorted(nodes)
    assert all(known[name] <= limit for name in within)
    assert all(name not in known or known[name] > limit for name in beyond)


def test_pods_spread_over_nodes_that_tie() -> None:
    totals = {f"n{i}": 10 + i / 1000 for i in range(5)} | {"far": 20}
    pods = Counter[str]()
    for uid in range(50):
        decision = decide(str(uid), list(totals), totals, replicas={}, pods_on=pods.__getitem__)
        pods[decision.chosen] += 1
    assert pods == {f"n{i}": 10 for i in range(5)}


def test_replicas_avoid_each_other_among_nodes_that_tie() -> None:
    totals = {"a": 1.0, "b": 1.0}
    pods = {"a": 0, "b": 9}
    decision = decide("uid", ["a", "b"], totals, replicas={"a": 1}, pods_on=pods.__getitem__)
    assert decision.chosen == "b"


def test_replicas_and_costs_count_as_milliseconds() -> None:
    request = Request(REQUEST.shares, spread_ms=5, cost_ms=2)
    totals = sum_up(
        request,
        expected({"a": 1, "b": 4, "c": 4}),
        ["a", "b", "c", "unknown"],
        replicas={"a": 2, "elsewhere": 1},
        costs={"b": 0.5, "elsewhere": 1},
    )
    assert totals == {"a": 11, "b": 5, "c": 4}


@given(st.integers(1, 3 * CANDIDATES))
def test_the_nearest_are_kept(count: int) -> None:
    totals = {f"n{i}": float((i * 7919) % 1009) for i in range(count)}
    kept = keep_nearest(totals, list(totals))
    assert len(kept) == min(count, CANDIDATES)
    farthest = max(totals[name] for name in kept)
    assert all(ms >= farthest for name, ms in totals.items() if name not in kept)

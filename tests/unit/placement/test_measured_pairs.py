"""Snapshots of measured pairs."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.placement.synthetic_network import SyntheticNetwork, snapshot

from clew.placement.latency_table import LatencyTable, location, node

EDGES = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)))


def table_of(edges: list[tuple[int, int]]) -> LatencyTable:
    table = LatencyTable()
    for a, b in edges:
        table.record(node(str(a)), node(str(b)), 1.0 + a + b, at=0.0)
    return table


@given(EDGES)
def test_components_are_what_chains_of_measurements_connect(edges: list[tuple[int, int]]) -> None:
    table = table_of(edges)
    pairs = snapshot(table)
    groups = {end: {end} for end in table.endpoints()}
    for a, b, _ in table.pairs():
        merged = groups[a] | groups[b]
        for end in merged:
            groups[end] = merged
    labels = dict(zip(pairs.ends, pairs.components(), strict=True))
    for end, group in groups.items():
        assert {other for other in labels if labels[other] == labels[end]} == group


@given(EDGES, st.integers(1, 40))
def test_an_end_keeps_its_pairs_when_it_has_few(edges: list[tuple[int, int]], limit: int) -> None:
    pairs = snapshot(table_of(edges))
    thinned = pairs.thin_out(limit)
    share = max(1, limit // max(1, len(pairs.ends)))
    before = dict(zip(pairs.ends, pairs.degrees(), strict=True))
    after = dict(zip(thinned.ends, thinned.degrees(), strict=True))
    assert set(after) == set(before)
    assert all(after[end] >= min(before[end], share) for end in before)
    assert len(thinned) <= max(limit, share * len(pairs.ends))


def test_a_pair_stays_in_its_fold_when_others_come() -> None:
    network = SyntheticNetwork(sites=5, nodes=40, locations=5)
    table = network.measured(0.3)
    before = snapshot(table)
    network.measure(table, node("n000"), location("l00"))
    table.record(node("another"), location("l00"), 1.0, at=0.0)
    after = snapshot(table)
    folds = {
        (after.ends[a], after.ends[b]): fold
        for a, b, fold in zip(after.a, after.b, after.folds, strict=True)
    }
    for a, b, fold in zip(before.a, before.b, before.folds, strict=True):
        assert folds[before.ends[a], before.ends[b]] == fold
    sizes = Counter(before.folds.tolist())
    assert len(sizes) == 8
    assert max(sizes.values()) < 2 * min(sizes.values())


def test_a_snapshot_does_not_follow_the_table() -> None:
    table = table_of([(0, 1)])
    pairs = snapshot(table)
    table.record(node("0"), node("1"), 50.0, at=1.0)
    assert pairs.ms.tolist() == [2.0]

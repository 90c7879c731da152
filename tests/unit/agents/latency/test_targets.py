"""What one node probes, and when."""

import itertools
import random

from clew.agents.latency.targets import KEPT_SECONDS, Targets
from clew.placement.latency_table import Endpoint, location
from clew.placement.measurement.locations import ProbeAddress
from clew.placement.measurement.round_result import RoundResult

HOME, EDGE = location("HOME"), location("EDGE")
WANTED = {HOME: ProbeAddress("h", 1), EDGE: ProbeAddress("e", 1)}
NEAR = RoundResult(1.0, 0.0)


def make_targets() -> Targets:
    return Targets(30.0, random.Random(1))


def run_until(targets: Targets, end: float) -> list[tuple[float, Endpoint]]:
    """When each target is probed, if all answer."""
    probed = []
    while (due := targets.next_due()) is not None and due.due < end:
        targets.take(due.end, NEAR, now=due.due, at=due.due)
        probed.append((due.due, due.end))
    return probed


def test_each_target_is_probed_once_per_interval_at_times_of_its_own() -> None:
    targets = make_targets()
    targets.set(WANTED, now=0.0, at=0.0)
    probed = run_until(targets, 3000.0)
    for end in WANTED:
        times = [at for at, one in probed if one == end]
        gaps = [b - a for a, b in itertools.pairwise(times)]
        assert 90 <= len(times) <= 110
        assert all(24 <= gap <= 36 for gap in gaps)
        assert len({round(gap, 3) for gap in gaps}) > 80


def test_an_unconfirmed_change_is_probed_again_at_once() -> None:
    targets = make_targets()
    targets.set({HOME: WANTED[HOME]}, now=0.0, at=0.0)
    targets.take(HOME, NEAR, now=10.0, at=10.0)
    assert not targets.take(HOME, RoundResult(9.0, 0.0), now=40.0, at=40.0)
    due = targets.next_due()
    assert due is not None
    assert due.due < 42.0
    assert targets.take(HOME, RoundResult(9.0, 0.0), now=41.0, at=41.0)


def test_what_is_no_longer_asked_for_is_known_for_some_time() -> None:
    targets = make_targets()
    targets.set(WANTED, now=0.0, at=0.0)
    run_until(targets, 31.0)
    assert not targets.set({HOME: WANTED[HOME]}, now=40.0, at=40.0)
    assert [end for end, _ in targets.records()] == [HOME, EDGE]
    assert [end for _, end in run_until(targets, 80.0)] == [HOME]
    assert targets.set({HOME: WANTED[HOME]}, now=40.0, at=41.0 + KEPT_SECONDS)
    assert [end for end, _ in targets.records()] == [HOME]


def test_another_address_is_another_place() -> None:
    targets = make_targets()
    targets.set(WANTED, now=0.0, at=0.0)
    run_until(targets, 31.0)
    assert targets.set({**WANTED, HOME: ProbeAddress("h2", 1)}, now=40.0, at=40.0)
    assert {end: record.latest for end, record in targets.records()} == {HOME: None, EDGE: NEAR}

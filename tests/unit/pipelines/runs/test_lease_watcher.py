"""When a lease counts as over: also the database may have been away."""

from clew.pipelines.runs.lease_watcher import GRACE_SECONDS, LeaseWatcher

SECOND = 10**9


def test_a_lease_that_was_seen_to_stand_still_is_over() -> None:
    leases = LeaseWatcher()
    for clock in range(100, 115):
        assert leases.expired([("r", 115 * SECOND)], now=clock * SECOND, clock=clock) == []
    assert leases.expired([("r", 115 * SECOND)], now=116 * SECOND, clock=116) == ["r"]


def test_a_lease_that_is_kept_up_is_not_over() -> None:
    leases = LeaseWatcher()
    for clock in range(100, 200):
        held = [("r", (clock - 1) * SECOND)]  # by a clock that is behind
        assert leases.expired(held, now=clock * SECOND, clock=clock) == []


def test_after_an_outage_the_holder_has_time_to_keep_it_up() -> None:
    leases = LeaseWatcher()
    held = [("r", 115 * SECOND)]
    for clock in range(100, 110):
        assert leases.expired(held, now=clock * SECOND, clock=clock) == []
    back = 140  # nobody could look meanwhile
    for clock in range(back, back + int(GRACE_SECONDS)):
        assert leases.expired(held, now=clock * SECOND, clock=clock) == []
    clock = back + int(GRACE_SECONDS)
    assert leases.expired(held, now=clock * SECOND, clock=clock) == ["r"]


def test_one_that_was_let_go_is_free_at_once() -> None:
    assert LeaseWatcher().expired([("r", 0), ("s", 5)], now=SECOND, clock=1) == ["r"]

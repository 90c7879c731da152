"""Ticks: each is run once, also those that were missed, and never more at once than may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.db import Connection
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import due_schedules, schedules
from clew.server.catalogue.pipelines.schedules import Schedule

SECOND = 10**9


def schedule(**more: object) -> Schedule:
    words: dict[str, object] = {
        "id": "5" * 32, "created": 0, "experiment": "e", "name": "often", "description": "",
        "enabled": True, "cron": None, "interval": None, "starts": None, "ends": None,
        "next": 0, "most": 1, "catchup": True, "pipeline": None, "version": None, "spec": "s",
        "service_account": "", "updated": 0, "config": {},
    }  # fmt: skip
    return Schedule(**(words | more))  # type: ignore[arg-type]


def seconds(found: tuple[list[int], int | None]) -> tuple[list[float], float | None]:
    due, later = found
    return [tick / SECOND for tick in due], None if later is None else later / SECOND


def test_what_was_missed_is_made_up_for_as_far_as_there_is_room() -> None:
    one = schedule(interval=10, next=10 * SECOND, most=3)
    assert seconds(due_schedules.choose_ticks(one, now=55 * SECOND, active=0)) == ([10, 20, 30], 40)
    assert seconds(due_schedules.choose_ticks(one, now=55 * SECOND, active=2)) == ([10], 20)
    assert seconds(due_schedules.choose_ticks(one, now=55 * SECOND, active=3)) == ([], 10)
    assert seconds(due_schedules.choose_ticks(one, now=9 * SECOND, active=0)) == ([], 10)


def test_without_catching_up_the_latest_alone_is_run() -> None:
    one = schedule(interval=10, next=10 * SECOND, most=3, catchup=False)
    assert seconds(due_schedules.choose_ticks(one, now=55 * SECOND, active=0)) == ([50], 60)
    assert seconds(due_schedules.choose_ticks(one, now=55 * SECOND, active=3)) == ([], 50)


def test_nothing_ticks_after_its_end() -> None:
    one = schedule(interval=10, next=10 * SECOND, most=9, ends=25 * SECOND)
    assert seconds(due_schedules.choose_ticks(one, now=55 * SECOND, active=0)) == ([10, 20], None)
    late = schedule(interval=10, next=10 * SECOND, most=9, ends=25 * SECOND, catchup=False)
    assert seconds(due_schedules.choose_ticks(late, now=55 * SECOND, active=0)) == ([20], None)


@given(
    cron=st.sampled_from(["* * * * * *", "*/7 * * * * *", "30 */5 * * * *", "0 0 3 * * *"]),
    away=st.integers(0, 200_000),
)
def test_the_latest_is_the_last_that_following_them_would_find(cron: str, away: int) -> None:
    first = schedules.next_tick(schedule(cron=cron), 1_700_000_000 * SECOND)
    assert first is not None
    now = first + away * SECOND
    (found,), later = due_schedules.choose_ticks(
        schedule(cron=cron, next=first, catchup=False), now=now, active=0
    )
    assert first <= found <= now
    assert later is not None
    assert later > now
    assert schedules.next_tick(schedule(cron=cron), found) == later


def test_a_millisecond_is_enough_for_years_of_seconds() -> None:
    years = 10 * 365 * 24 * 3600
    for one in (
        schedule(cron="* * * * * *", next=SECOND, catchup=False),
        schedule(interval=1, next=SECOND, catchup=False),
    ):
        assert seconds(due_schedules.choose_ticks(one, now=years * SECOND, active=0)) == (
            [years],
            years + 1,
        )


@pytest.fixture
def graph(connection: Connection) -> Graph:
    return Graph(connection, "a" * 32)


def made(graph: Graph, **more: object) -> str:
    asked = {"experiment": "e", "name": "often", "interval": 1, "spec": "root: {}"} | more
    return schedules.create(graph, schedules.NewSchedule(**asked))  # type: ignore[arg-type]


def due(graph: Graph) -> list[int]:
    rows = graph.connection.rows("SELECT scheduled FROM run_request ORDER BY scheduled")
    return [int(row[0]) for row in rows]


def test_a_tick_asks_for_its_run_once(graph: Graph) -> None:
    one = made(graph, most=2)
    first = schedules.get(graph, one).next
    assert first is not None
    assert due_schedules.queue_due_runs(graph, first - 1) == 0
    assert due_schedules.queue_due_runs(graph, first) == 1
    assert due_schedules.queue_due_runs(graph, first) == 0
    assert due_schedules.queue_due_runs(graph, first + 5 * SECOND) == 1, "two may go on at once"
    assert due(graph) == [first, first + SECOND]
    run = run_queue.claim_next(graph, "h", now=0, lease=SECOND, leases=LeaseWatcher(0))
    assert run is not None
    assert (run.schedule, run.scheduled) == (one, first)
    assert run.name.startswith("often 20")
    run_queue.finish_request(graph, run.id, "h", state="succeeded", error=None)
    assert due_schedules.queue_due_runs(graph, first + 5 * SECOND) == 1
    assert due_schedules.next_due(graph) == first + 3 * SECOND


def test_one_that_is_disabled_does_not_tick(graph: Graph) -> None:
    one = made(graph)
    schedules.set_enabled(graph, one, enabled=False)
    assert due_schedules.next_due(graph) is None
    assert due_schedules.queue_due_runs(graph, 2**62) == 0


def test_a_deleted_pipeline_makes_a_failed_run(graph: Graph) -> None:
    one = made(graph, spec=None, pipeline="9" * 32)
    first = schedules.get(graph, one).next
    assert first is not None
    assert due_schedules.queue_due_runs(graph, first) == 1
    (row,) = graph.connection.rows("SELECT state, error FROM run_request")
    assert row == ("failed", "the pipeline of the schedule was deleted")
    assert run_queue.claim_next(graph, "h", now=0, lease=1, leases=LeaseWatcher(0)) is None

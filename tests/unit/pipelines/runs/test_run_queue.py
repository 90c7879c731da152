"""Who runs what: one holder at a time, and none is forgotten."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from clew.db import Connection, connect
from clew.errors import NotFound, UsageError
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.pipelines.runs.run_list import Position, list_positions
from clew.prov.graph import Graph
from clew.server.catalogue.list_fields import RUNS
from clew.server.catalogue.list_pages import ListQuery, fetch_page

SECOND = 10**9


@pytest.fixture
def graph(connection: Connection) -> Graph:
    return Graph(connection, "a" * 32)


def asked(name: str = "one") -> run_queue.NewRun:
    return run_queue.NewRun(
        experiment="e", name=name, spec="root: {}", config={"parameters": {"n": 1}}
    )


def claimed(
    graph: Graph, holder: str, *, now: int = 0, lease: int = 10
) -> run_queue.RunRequest | None:
    return run_queue.claim_next(
        graph, holder, now=now * SECOND, lease=lease * SECOND, leases=LeaseWatcher(0)
    )


def test_the_oldest_is_claimed_first_and_once(graph: Graph) -> None:
    first, second = run_queue.queue_run(graph, asked()), run_queue.queue_run(graph, asked("two"))
    found = [claimed(graph, "h"), claimed(graph, "i"), claimed(graph, "j")]
    assert [one and one.id for one in found] == [first, second, None]
    assert found[0] is not None
    assert found[0].config == {"parameters": {"n": 1}}


def test_a_run_requested_twice_runs_once(graph: Graph) -> None:
    one = asked()
    assert run_queue.queue_run(graph, one) == run_queue.queue_run(graph, one)
    first = claimed(graph, "h")
    assert first is not None
    assert claimed(graph, "i") is None
    again = claimed(graph, "h")  # the answer to its first claim may have been lost
    assert again is not None and again.id == first.id


def test_a_run_is_free_when_its_lease_is_over(graph: Graph) -> None:
    run = run_queue.queue_run(graph, asked())
    claimed(graph, "h", now=0, lease=10)
    assert claimed(graph, "i", now=9) is None
    assert run_queue.renew_lease(graph, run, "h", lease=20 * SECOND) is False
    assert claimed(graph, "i", now=19) is None
    found = claimed(graph, "i", now=21, lease=30)
    assert found is not None
    assert (found.id, found.tries) == (run, 2)
    assert run_queue.renew_lease(graph, run, "h", lease=40 * SECOND) is None, "it is another's now"
    assert not run_queue.finish_request(graph, run, "h", state="failed", error="late")
    assert run_queue.finish_request(graph, run, "i", state="succeeded", error=None)
    assert run_queue.get_request(graph, run).state == "succeeded"
    assert claimed(graph, "j", now=100) is None


def test_a_run_is_not_claimed_while_a_process_performs_it(graph: Graph) -> None:
    run = run_queue.queue_run(graph, asked())
    claimed(graph, "h", lease=10)
    late = {"now": 20 * SECOND, "lease": 30 * SECOND, "leases": LeaseWatcher(0)}
    assert run_queue.claim_next(graph, "i", **late, is_alive=lambda one: one == run) is None
    assert run_queue.claim_next(graph, "i", **late, is_alive=lambda one: one != run) is not None


def test_a_released_run_can_be_claimed_again(graph: Graph) -> None:
    run = run_queue.queue_run(graph, asked())
    claimed(graph, "h", lease=1000)
    run_queue.release_claim(graph, "h", blame=False)
    found = claimed(graph, "i", now=1, lease=1000)
    assert found is not None
    assert found.tries == 1
    run_queue.release_claim(graph, "i", blame=True)
    found = claimed(graph, "j", now=1)
    assert found is not None
    assert (found.id, found.tries) == (run, 2)


def test_what_is_put_away_is_gone_on_with(graph: Graph) -> None:
    run = run_queue.queue_run(graph, asked())
    claimed(graph, "h")
    run_queue.requeue_interrupted(graph, run, "h")
    found = claimed(graph, "i")
    assert found is not None
    assert (found.tries, found.finished is not None) == (1, True)


def test_stopping(graph: Graph) -> None:
    waiting, going = run_queue.queue_run(graph, asked()), run_queue.queue_run(graph, asked())
    run_queue.cancel_request(graph, waiting)
    found = claimed(graph, "h")
    assert found is not None
    assert found.id == going, "what was stopped in the queue never runs"
    run_queue.cancel_request(graph, going)
    assert run_queue.renew_lease(graph, going, "h", lease=SECOND) is True
    run_queue.finish_request(graph, going, "h", state="canceled", error="asked")
    run_queue.cancel_request(graph, going)
    assert [run_queue.get_request(graph, run).state for run in (waiting, going)] == [
        "canceled",
        "canceled",
    ]
    with pytest.raises(NotFound):
        run_queue.cancel_request(graph, "f" * 32)


def test_trying_again(graph: Graph) -> None:
    run = run_queue.queue_run(graph, asked())
    with pytest.raises(UsageError):
        run_queue.requeue_finished(graph, run)
    claimed(graph, "h")
    run_queue.finish_request(graph, run, "h", state="failed", error="so")
    run_queue.requeue_finished(graph, run)
    found = claimed(graph, "h")
    assert found is not None
    assert (found.id, found.tries, found.error) == (run, 1, None)


def test_a_running_run_is_canceled_and_then_deleted(graph: Graph) -> None:
    run = run_queue.queue_run(graph, asked())
    claimed(graph, "h")
    run_queue.delete_request(graph, run)
    with pytest.raises(NotFound):
        run_queue.get_request(graph, run)
    assert list_positions(graph, Position(), 9) == []
    query = ListQuery(RUNS.fields["created_at"])
    assert fetch_page(graph, RUNS, query).total == 0
    assert run_queue.renew_lease(graph, run, "h", lease=SECOND) is True
    run_queue.release_claim(graph, "h", blame=False)
    taken_over = claimed(graph, "i", now=1)
    assert taken_over is not None
    assert taken_over.stop, "the worker that takes over cancels it, too"
    assert run_queue.finish_request(graph, run, "i", state="canceled", error=None)
    assert graph.connection.rows("SELECT COUNT(*) FROM run_request") == [(0,)]
    assert graph.connection.rows("SELECT COUNT(*) FROM spec") == [(0,)]


def test_many_who_claim_at_once_share_without_one_twice(
    database: tuple[Path, str | None], graph: Graph
) -> None:
    wanted = {run_queue.queue_run(graph, asked(str(n))) for n in range(40)}
    taken: list[str] = []

    def take(holder: str) -> None:
        path, address = database
        with closing(connect(path, address=address)) as own:
            mine = Graph(own, "a" * 32)
            while (run := claimed(mine, holder)) is not None:
                taken.append(run.id)
                run_queue.finish_request(mine, run.id, holder, state="succeeded", error=None)

    threads = [threading.Thread(target=take, args=(f"h{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 40
    assert set(taken) == wanted

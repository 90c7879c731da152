"""The queue of repeats: one server at a time holds each, and none is lost or performed twice."""

import pytest

from clew.documents.executions.repeats import RepeatOptions, RepeatRequest
from clew.documents.ids import TaskId, Uid
from clew.errors import Busy, NotFound
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.prov.graph import Graph
from clew.server.catalogue import repeat_requests

SECOND = 10**9
TARGET = Uid("a" * 32)
RESULT = {
    "execution": {"id": "e2", "uid": "b" * 32, "command": ["true"], "state": "done"},
    "of": "e1",
    "verdict": "different",
    "differences": [{"path": "out.txt", "kind": "content", "a": "blake3:1", "b": "blake3:2"}],
    "divergence": {
        "process": "e2.p1",
        "of": "e1.p1",
        "command": ["true"],
        "causes": [{"cause": "clock", "detail": "it read the clock", "confidence": "confirmed"}],
    },
    "ran": [],
    "reused": [],
    "warnings": [],
}


def queue(graph: Graph, **options: object) -> Uid:
    asked = RepeatOptions(**options)  # type: ignore[arg-type]
    return repeat_requests.queue_repeat(graph, "e1", TARGET, asked)


def claim(
    graph: Graph, holder: str, *, now: int = 0, lease: int = 10
) -> tuple[RepeatRequest, int] | None:
    return repeat_requests.claim_next(
        graph, holder, now=now * SECOND, lease=lease * SECOND, leases=LeaseWatcher(0)
    )


def renew(graph: Graph, request: Uid, holder: str, *, lease: int = 20) -> bool | None:
    return repeat_requests.renew_lease(
        graph, request, holder, lease=lease * SECOND, output="so far\n"
    )


def test_a_repeat_from_the_request_to_the_result(graph: Graph) -> None:
    request = queue(graph, parameters={"2": "0.5"})
    assert repeat_requests.get_repeat(graph, request).state == "queued"
    found = claim(graph, "h")
    assert found is not None
    assert (found[0].id, found[0].state, found[1]) == (request, "running", 1)
    assert found[0].options.parameters == {"2": "0.5"}
    assert claim(graph, "i") is None, "it is held"
    assert renew(graph, request, "h") is False
    assert repeat_requests.get_repeat(graph, request).output == "so far\n"
    assert repeat_requests.finish_repeat(
        graph, request, "h", state="done", output="all\n", result=RESULT
    )
    done = repeat_requests.get_repeat(graph, request)
    assert (done.state, done.verdict, done.output) == ("done", "different", "all\n")
    assert done.result is not None and done.result.divergence is not None
    assert done.result.divergence.causes[0].confidence == "confirmed"
    assert done.started is not None and done.ended is not None
    (listed,) = repeat_requests.list_repeats(graph, target=TARGET, limit=10)
    assert (listed.verdict, listed.output, listed.result) == ("different", "", None)
    assert repeat_requests.list_repeats(graph, target="b" * 32, limit=10) == []
    assert claim(graph, "j", now=100) is None


def test_the_same_request_sent_again_is_the_same_repeat(graph: Graph) -> None:
    request = queue(graph)
    assert queue(graph) == request
    assert queue(graph, incremental=True) != request
    claim(graph, "h")
    assert queue(graph) == request
    repeat_requests.finish_repeat(graph, request, "h", state="failed", output="", error="why")
    assert queue(graph) != request, "the first one has ended"


def test_another_server_goes_on_when_the_lease_has_expired(graph: Graph) -> None:
    request = queue(graph)
    claim(graph, "h", lease=10)
    assert claim(graph, "i", now=9) is None
    assert renew(graph, request, "h", lease=20) is False
    assert claim(graph, "i", now=19) is None
    found = claim(graph, "i", now=21, lease=30)
    assert found is not None and found[1] == 2
    assert renew(graph, request, "h") is None, "the first server learns that it lost the repeat"
    late = repeat_requests.finish_repeat(
        graph, request, "h", state="done", output="", result=RESULT
    )
    assert not late
    assert repeat_requests.get_repeat(graph, request).state == "running"


def test_a_repeat_that_is_still_recorded_is_not_claimed(graph: Graph) -> None:
    request = queue(graph)
    claim(graph, "h")
    late = {"now": 20 * SECOND, "lease": 30 * SECOND, "leases": LeaseWatcher(0)}
    alive = {request}
    assert repeat_requests.claim_next(graph, "i", **late, is_alive=alive.__contains__) is None  # type: ignore[arg-type]
    alive.clear()
    late["leases"] = LeaseWatcher(0)
    assert repeat_requests.claim_next(graph, "i", **late, is_alive=alive.__contains__) is not None  # type: ignore[arg-type]


def test_an_interrupted_repeat_is_claimed_at_once(graph: Graph) -> None:
    request = queue(graph)
    for tries in (1, 1, 1):
        found = claim(graph, "h", now=1)
        assert found is not None and found[1] == tries
        repeat_requests.release_repeat(graph, request, "h", blame=False)
    for tries in (1, 2, 3, 4):
        found = claim(graph, "h", now=1)
        assert found is not None and found[1] == tries
        repeat_requests.release_repeat(graph, request, "h", blame=True)


def test_cancel(graph: Graph) -> None:
    waiting = queue(graph)
    repeat_requests.cancel_repeat(graph, waiting)
    assert repeat_requests.get_repeat(graph, waiting).state == "canceled"
    assert claim(graph, "h") is None
    running = queue(graph)
    claim(graph, "h")
    repeat_requests.cancel_repeat(graph, running)
    assert renew(graph, running, "h") is True
    repeat_requests.finish_repeat(graph, running, "h", state="canceled", output="")
    repeat_requests.cancel_repeat(graph, running)
    assert repeat_requests.get_repeat(graph, running).state == "canceled"
    with pytest.raises(NotFound):
        repeat_requests.cancel_repeat(graph, "c" * 32)


def test_the_queue_and_the_list_are_bounded(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeat_requests, "MAX_WAITING", 2)
    monkeypatch.setattr(repeat_requests, "MAX_FINISHED", 2)
    for number in range(5):
        repeat_requests.cancel_repeat(graph, queue(graph, parameters={"1": str(number)}))
    kept = repeat_requests.list_repeats(graph, limit=10)
    assert [one.options.parameters["1"] for one in kept] == ["4", "3", "2"]
    queue(graph, parameters={"1": "a"})
    queue(graph, parameters={"1": "b"})
    with pytest.raises(Busy):
        queue(graph, parameters={"1": "c"})


def test_projects_do_not_see_each_other(graph: Graph) -> None:
    request = queue(graph)
    other = Graph(graph.connection, "q" * 32)
    assert claim(other, "h") is None
    with pytest.raises(NotFound):
        repeat_requests.get_repeat(other, request)


def test_the_uids_of_tasks_follow_from_the_request() -> None:
    one, task = Uid("a" * 32), TaskId("r1/train")
    assert repeat_requests.uid_of_task(one, task) == repeat_requests.uid_of_task(one, task)
    assert repeat_requests.uid_of_task(Uid("b" * 32), task) != repeat_requests.uid_of_task(
        one, task
    )
    assert len(repeat_requests.uid_of_task(one, task)) == 32

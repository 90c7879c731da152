"""A request with an Idempotency-Key makes one thing, however often it is sent."""

import threading
import time
from pathlib import Path

import pytest

from clew.db import connect
from clew.documents.ids import Uid
from clew.errors import Conflict
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import NewRun
from clew.prov.graph import Graph
from clew.server.catalogue.idempotent_requests import make_once
from clew.server.catalogue.pipelines import experiments

REQUEST = {"spec": "{}", "parameters": {"a": [1, 2]}}


def queue(graph: Graph, key: str | None, request: dict[str, object] = REQUEST) -> str:
    run = NewRun(experiment=experiments.get_default(graph), name="r", spec="{}")
    return make_once(graph, key, request, lambda: run_queue.insert_run(graph, run))


def count(graph: Graph) -> int:
    return int(graph.connection.rows("SELECT count(*) FROM run_request")[0][0])


def test_a_repeated_request_gets_what_the_first_made(graph: Graph) -> None:
    first = queue(graph, "runs 1")
    assert queue(graph, "runs 1") == first
    assert run_queue.get_request(graph, Uid(first)).name == "r"
    assert count(graph) == 1
    assert len({queue(graph, "runs 2"), queue(graph, None), queue(graph, None), first}) == 4


def test_a_key_belongs_to_one_request(graph: Graph) -> None:
    queue(graph, "runs 1")
    with pytest.raises(Conflict, match="another request"):
        queue(graph, "runs 1", {**REQUEST, "parameters": {}})
    assert count(graph) == 1


def test_a_request_that_failed_can_be_sent_again(graph: Graph) -> None:
    def fail() -> str:
        raise Conflict("no")

    with pytest.raises(Conflict, match="no"):
        make_once(graph, "runs 1", REQUEST, fail)
    assert queue(graph, "runs 1")


def test_keys_are_kept_for_a_day(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    first = queue(graph, "runs 1")
    later = time.time_ns() + 25 * 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert queue(graph, "runs 1") != first


def test_requests_at_the_same_time_make_one_thing(database: tuple[Path, str | None]) -> None:
    path, address = database
    made: list[str] = []
    with connect(path, address=address) as connection:
        experiments.get_default(Graph(connection, "p" * 32))
    together = threading.Barrier(4)

    def send() -> None:
        with connect(path, address=address) as connection:
            together.wait()
            made.append(queue(Graph(connection, "p" * 32), "runs 1"))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len(set(made)) == 1

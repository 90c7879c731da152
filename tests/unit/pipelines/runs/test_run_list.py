"""All runs in one list: those that were asked for, and those that were run by hand."""

from clew.pipelines.runs import run_list, run_queue
from clew.pipelines.runs.run_list import Position
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments


def asked(graph: Graph) -> str:
    wanted = run_queue.NewRun(experiment=experiments.get_default(graph), name="one", spec="{}")
    return run_queue.queue_run(graph, wanted)


def every(graph: Graph, limit: int) -> list[str]:
    """All of them, page by page."""
    found: list[Position] = []
    while page := run_list.list_positions(graph, found[-1] if found else Position(), limit):
        assert len(page) <= limit
        found += page
    return [one.uid for one in found]


def test_each_is_there_once_the_newest_first(graph: Graph) -> None:
    by_hand = "a" * 32
    graph.begin_run(by_hand)
    begun, waiting = asked(graph), asked(graph)
    graph.begin_run(begun)
    graph.begin("e" * 32)  # an execution is no run
    for limit in (1, 2, 10):
        found = every(graph, limit)
        assert sorted(found) == sorted({by_hand, begun, waiting})
        assert found[-1] == by_hand
    assert run_list.count_by_state(graph) == {"queued": 2}


def test_a_request_is_found_by_its_uid(graph: Graph) -> None:
    uid = asked(graph)
    found = run_list.find_request(graph, uid)
    assert found is not None
    assert (found.id, found.state) == (uid, "queued")
    assert run_list.find_request(graph, "b" * 32) is None

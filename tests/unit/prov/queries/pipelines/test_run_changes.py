"""How a run went, change by change."""

from clew.prov.events import AnyEvent, Ended, Started
from clew.prov.graph import Graph
from clew.prov.queries.pipelines.runs import find_run, list_changes

RUN = "f" * 32


def begun(n: int, name: str | None = None) -> AnyEvent:
    activity, kind = (f"{RUN}/{name}", "task") if name else (RUN, "run")
    return Started(execution=RUN, n=n, at=n * 10**9, activity=activity, kind=kind, name=name)


def ended(n: int, name: str | None = None, **facets: object) -> AnyEvent:
    activity = f"{RUN}/{name}" if name else RUN
    return Ended(execution=RUN, n=n, at=n * 10**9, activity=activity, facets=facets)


def test_changes_keep_the_order_of_their_events(graph: Graph) -> None:
    graph.fold([begun(1), begun(2, "train"), ended(3, "train", state="failed", error="no")])
    found = list_changes(graph, find_run(graph, RUN))
    assert [(one.n, one.task, one.change, one.state) for one in found] == [
        (1, None, "started", "running"),
        (2, "r1/train", "started", "running"),
        (3, "r1/train", "ended", "failed"),
    ]
    assert (found[2].error, found[2].at.timestamp()) == ("no", 3.0)


def test_only_what_came_after(graph: Graph) -> None:
    graph.fold([begun(1), begun(2, "train"), ended(3, "train", state="failed")])
    run = find_run(graph, RUN)
    assert [one.n for one in list_changes(graph, run, since=2)] == [3]
    # The run was resumed: its start is known already, its ends are new.
    graph.fold([begun(4), begun(5, "train"), ended(6, "train", state="succeeded"), ended(7)])
    assert [one.n for one in list_changes(graph, run, since=3)] == [6, 7]
    assert list_changes(graph, run, since=7) == []

"""The index has what was recorded, follows changes, and reads only what is new."""

from typing import Any

import pytest
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder
from tests.unit.server.catalogue.activities.conftest import SECOND, ManyActivities

from clew.documents.project.activities import Activity
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import NewRun
from clew.prov.events import Ended
from clew.prov.graph import Graph
from clew.server.catalogue.activities.conditions import parse_conditions
from clew.server.catalogue.activities.index import NEW_EXECUTIONS
from clew.server.catalogue.activities.selection import list_names, select_activities
from clew.server.catalogue.activities.sort_order import parse_sorting
from clew.server.catalogue.pipelines import experiments
from clew.server.catalogue.topic_versions import EXECUTIONS


def _list(graph: Graph, **more: Any) -> list[Activity]:
    newest = parse_sorting("started", "desc")
    return select_activities(graph, parse_conditions(**more), newest, limit=1000).activities


def test_executions_and_runs_have_parameters_metrics_and_errors(many: ManyActivities) -> None:
    many.add_execution("--lr", "0.1", "--opt=adam", "--fast", acc=0.9, train={"loss": 1})
    many.add_execution(status=3, stderr="Traceback\nValueError: no data\n")
    many.add_run(acc=0.8)
    many.add_run("failed", "it ran out of memory")
    many.refresh()
    failed_run, run, failed, execution = _list(many.project.graph)
    assert execution.parameters == {"lr": 0.1, "opt": "adam", "fast": True}
    assert execution.metrics == {"acc": 0.9, "train.loss": 1.0}
    assert (execution.id, execution.state, execution.type) == ("e1", "done", "execution")
    assert (failed.state, failed.error) == ("failed", "ValueError: no data")
    assert run.parameters == {"lr": 0.5, "layers": "[1, 2]"}
    assert (run.id, run.name, run.state, run.metrics) == ("r1", "iris", "succeeded", {"acc": 0.8})
    assert failed_run.error == "train: it ran out of memory"
    assert list_names(many.project.graph) == (
        ("fast", "layers", "lr", "opt"),
        ("acc", "train.loss"),
    )


def test_metrics_of_hostile_files_are_bounded(many: ManyActivities) -> None:
    many.add_execution(**{"n" * 1000: 1, "\0": 2, "x": float("nan"), "big": 10**400})
    many.add_execution(**{f"m{number}": number for number in range(1000)})
    many.refresh()
    wide, odd = _list(many.project.graph)
    assert len(wide.metrics) == 200
    assert odd.metrics == {"n" * 200: 1.0, "�": 2.0, "x": None}


def test_a_change_is_noticed(many: ManyActivities) -> None:
    graph = many.project.graph
    uid = many.add_execution(ended=False)
    many.refresh()
    assert [one.state for one in _list(graph)] == ["broken"]  # no recorder holds its lock
    graph.fold([Ended(execution=uid, n=99, at=11 * SECOND, activity=uid, status=0)])
    many.refresh()
    assert [one.state for one in _list(graph)] == ["done"]

    run = many.add_run("failed")
    many.refresh()
    assert _list(graph)[0].state == "failed"
    resumed = {"state": "succeeded"}
    graph.fold([Ended(execution=run, n=9, at=99 * SECOND, activity=run, facets=resumed)])
    many.refresh()
    assert _list(graph)[0].state == "succeeded"

    graph.remove(uid)
    many.refresh()
    assert [one.id for one in _list(graph)] == ["r1"]


def test_a_requested_run_is_followed_until_it_is_deleted(many: ManyActivities) -> None:
    graph = many.project.graph
    experiment = experiments.require_active(graph, "")
    config = {"parameters": {"lr": 2}}
    new = NewRun(experiment=experiment, name="asked", spec="{}", config=config)
    uid = run_queue.queue_run(graph, new)
    many.refresh()
    (run,) = _list(graph, experiment=experiment)
    assert (run.id, run.state, run.parameters) == (uid, "pending", {"lr": 2})
    run_queue.cancel_request(graph, uid)
    many.refresh()
    assert _list(graph)[0].state == "canceled"
    run_queue.archive_request(graph, uid, archived=True)
    many.refresh()
    assert _list(graph) == []
    assert len(_list(graph, archived=True)) == 1
    run_queue.delete_request(graph, uid)
    many.refresh()
    assert _list(graph, archived=True) == []


def test_the_index_can_be_deleted_and_is_made_again(many: ManyActivities) -> None:
    many.add_execution(acc=1)
    many.add_run(acc=2)
    many.refresh()
    graph = many.project.graph
    before = _list(graph)
    for table in ("activity_summary", "activity_value"):
        graph.connection.rows(f"DELETE FROM {table}")
    many.refresh()
    assert _list(graph) == before


def test_metrics_that_take_too_long_to_read_come_later(many: ManyActivities) -> None:
    for number in range(60):
        many.add_execution(acc=number)
    assert many.refresh(seconds=-1) == 60
    assert [one.metrics for one in _list(many.project.graph)] == [{}] * 60
    assert many.refresh() == 0
    assert _list(many.project.graph)[0].metrics == {"acc": 59.0}


def test_a_refresh_reads_only_what_is_new(
    many: ManyActivities, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        many.add_execution(acc=number)
        many.add_run(acc=number)
    many.refresh()
    many.add_execution(acc=1)
    connection = many.project.graph.connection
    rows, read = connection.rows, []

    def counted(sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        found = rows(sql, parameters)
        read.append(len(found))
        return found

    monkeypatch.setattr(connection, "rows", counted)
    many.refresh()
    assert len(read) < 20
    assert sum(read) < 20


def test_pods_are_not_read(many: ManyActivities) -> None:
    """A thousand Pods after the newest execution: no query of lists or of their version reads
    them."""
    graph = many.project.graph
    many.add_execution()
    cluster = ClusterBuilder()
    for number in range(1000):
        cluster.pod("team", f"pod-{number}").end()
    cluster.fold(graph)
    many.refresh()
    assert [one.id for one in _list(graph)] == ["e1"]
    many.add_execution()
    many.refresh()
    assert [one.id for one in _list(graph)] == ["e1002", "e1"]
    if many.project.settings.graph is None:
        queries = [
            (NEW_EXECUTIONS, 2),
            *((query, 1) for query in EXECUTIONS if "execution" in query),
        ]
        for query, count in queries:
            plan = graph.connection.rows(f"EXPLAIN QUERY PLAN {query}", (graph.project,) * count)
            used = [line for *_, line in plan if "execution" in line or line.startswith("SEARCH x")]
            assert used and all("execution_of_users" in line for line in used), plan

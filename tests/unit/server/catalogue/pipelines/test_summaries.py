"""What the pages of pipelines, schedules and experiments list, on both databases."""

from datetime import UTC, datetime

import pytest

from clew.errors import NotFound
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import NewRun
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments, pipelines, schedules, summaries, versions
from clew.server.catalogue.pipelines.schedules import NewSchedule
from clew.server.catalogue.pipelines.versions import Metadata


def add_pipeline(graph: Graph, name: str, **more: str) -> str:
    return pipelines.create(graph, Metadata(name=name, **more), spec=f"spec of {name}")


def queue(graph: Graph, **more: str | None) -> str:
    experiment = more.pop("experiment", None) or experiments.get_default(graph)
    return run_queue.queue_run(graph, NewRun(experiment=experiment, name="r", spec="{}", **more))


def add_schedule(graph: Graph, pipeline: str, **more: object) -> str:
    given = {"experiment": experiments.get_default(graph), "name": "s", "interval": 60} | more
    return schedules.create(graph, NewSchedule(pipeline=pipeline, **given))  # type: ignore[arg-type]


def test_a_pipeline_with_its_versions_runs_and_schedules(graph: Graph) -> None:
    iris, taxi = add_pipeline(graph, "iris"), add_pipeline(graph, "Taxi")
    pipelines.add_version(graph, iris, Metadata(name="v2"), spec="two")
    queue(graph, pipeline=iris)
    newest = queue(graph, pipeline=iris)
    hidden = queue(graph, pipeline=iris)
    run_queue.delete_request(graph, run_queue.get_request(graph, hidden).id)  # type: ignore[arg-type]
    queue(graph)
    add_schedule(graph, iris)

    found, total = summaries.list_pipelines(graph)
    assert ([one.name for one in found], total) == (["iris", "Taxi"], 2)
    first, second = found
    assert (first.versions, first.runs, first.schedules) == (2, 2, 1)
    assert first.latest
    assert first.latest.name == "v2"
    assert first.last_run
    assert (first.last_run.uid, first.last_run.state) == (newest, "pending")
    assert (second.id, second.runs, second.last_run) == (taxi, 0, None)
    assert summaries.get_pipeline(graph, iris) == first
    assert [one.name for one in summaries.list_versions(graph, iris)] == ["v2", "iris"]
    with pytest.raises(NotFound):
        summaries.get_pipeline(graph, "0" * 32)


def test_pipelines_are_found_by_parts_of_their_texts(graph: Graph) -> None:
    add_pipeline(graph, "iris", description="Flowers, 100%")
    add_pipeline(graph, "a_b")
    add_pipeline(graph, "axb")

    def names(text: str) -> list[str]:
        return [one.name for one in summaries.list_pipelines(graph, text)[0]]

    assert names("IRI") == names("flow") == names("0%") == ["iris"]
    assert names("_") == ["a_b"]
    assert names("nothing") == []


def test_a_schedule_with_its_next_times(graph: Graph) -> None:
    iris = add_pipeline(graph, "iris")
    version = versions.resolve(graph, iris, "").id
    begin = datetime(2100, 1, 1, tzinfo=UTC)
    starts = int(begin.timestamp()) * 10**9
    made = add_schedule(
        graph, iris, interval=None, cron="0 0 9 * * *", starts=starts, version=version
    )
    other = add_schedule(graph, add_pipeline(graph, "other"))
    queue(graph, schedule=made)
    assert [one.id for one in summaries.list_schedules(graph)] == [other, made]
    (found,) = summaries.list_schedules(graph, iris)
    assert found == summaries.get_schedule(graph, made)
    assert found.next == tuple(datetime(2100, 1, day, 9, tzinfo=UTC) for day in (1, 2, 3))
    assert found.pipeline
    assert found.version
    assert found.experiment
    assert (found.pipeline.name, found.experiment.name) == ("iris", "Default")
    assert (found.starts, found.ends, found.runs) == (begin, None, 1)
    schedules.set_enabled(graph, made, enabled=False)
    assert summaries.get_schedule(graph, made).next == ()
    pipelines.delete(graph, iris, cascade=True)
    assert summaries.get_schedule(graph, made).pipeline is None


def test_an_experiment_with_its_runs(graph: Graph) -> None:
    rates = experiments.create(graph, "rates", "How fast?")
    run = queue(graph, experiment=rates)
    add_schedule(graph, add_pipeline(graph, "iris"), experiment=rates)
    experiments.archive(graph, rates)
    default, found = summaries.list_experiments(graph)
    assert default.name == "Default"
    assert (found.description, found.archived) == ("How fast?", True)
    assert (found.runs, found.schedules) == (1, 1)
    assert found.last_run
    assert found.last_run.uid == run

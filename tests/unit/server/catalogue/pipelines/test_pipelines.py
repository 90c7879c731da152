"""Pipelines, their versions and experiments as rows."""

from dataclasses import replace

import pytest

from clew.errors import Exists, NotFound, UsageError
from clew.pipelines.runs import pipeline_specs, run_queue
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments, pipelines, schedules, versions
from clew.server.catalogue.pipelines.versions import Metadata


def kept(graph: Graph) -> set[str]:
    return {str(row[0]) for row in graph.connection.rows("SELECT text FROM spec")}


def test_a_pipeline_comes_with_its_first_version(graph: Graph) -> None:
    asked = Metadata(name="p", display_name="Pipeline", description="why", tags={"a": "ü"})
    made = pipelines.create(graph, asked, spec="one")
    found = pipelines.get(graph, made)
    assert found == pipelines.get_by_name(graph, "p")
    assert (found.name, found.display_name, found.description) == ("p", "Pipeline", "why")
    assert found.tags == {"a": "ü"}
    version = versions.resolve(graph, made, "")
    assert (version.name, version.display_name, version.tags) == ("p", "Pipeline", {"a": "ü"})
    assert pipeline_specs.text_of(graph, version.spec) == "one"


def test_the_newest_version_is_meant_where_none_is_named(graph: Graph) -> None:
    made = pipelines.create(graph, Metadata(name="p"), spec="one")
    first = versions.resolve(graph, made, "").id
    second = pipelines.add_version(graph, made, Metadata(name="v2"), spec="two")
    assert versions.resolve(graph, made, "").id == second
    assert versions.resolve(graph, made, first).id == first
    assert versions.resolve(graph, "", first).pipeline == made
    other = pipelines.create(graph, Metadata(name="q"))
    for pipeline, version in ((other, first), (other, ""), ("", "0"), ("0", "")):
        with pytest.raises(NotFound):
            versions.resolve(graph, pipeline, version)


def test_a_name_is_taken_once_and_what_came_with_it_is_not_kept(graph: Graph) -> None:
    made = pipelines.create(graph, Metadata(name="p"), spec="one")
    with pytest.raises(Exists):
        pipelines.create(graph, Metadata(name="p"), spec="another")
    with pytest.raises(Exists):
        pipelines.add_version(graph, made, Metadata(name="p"), spec="a third")
    with pytest.raises(NotFound):
        pipelines.add_version(graph, "0" * 32, Metadata(name="v"), spec="a fourth")
    assert kept(graph) == {"one"}
    other = Graph(graph.connection, "q" * 32)
    assert pipelines.create(other, Metadata(name="p"))


def test_what_is_said_of_them_can_change(graph: Graph) -> None:
    made = pipelines.create(graph, Metadata(name="p"), spec="one")
    pipelines.update(graph, replace(pipelines.get(graph, made), display_name="P", tags={"a": "b"}))
    found = pipelines.get(graph, made)
    assert (found.name, found.display_name, found.tags) == ("p", "P", {"a": "b"})
    version = versions.resolve(graph, made, "")
    versions.update(graph, replace(version, display_name="V", description="d"))
    changed = versions.get(graph, made, version.id)
    assert (changed.display_name, changed.description, changed.spec) == ("V", "d", version.spec)


def test_a_pipeline_with_versions_is_deleted_with_them_or_not_at_all(graph: Graph) -> None:
    made = pipelines.create(graph, Metadata(name="p"), spec="one")
    second = pipelines.add_version(graph, made, Metadata(name="v2"), spec="two")
    run = run_queue.queue_run(graph, run_queue.NewRun(experiment="x", name="r", spec="one"))
    with pytest.raises(UsageError, match="versions"):
        pipelines.delete(graph, made, cascade=False)
    versions.delete(graph, made, second)
    assert kept(graph) == {"one"}
    with pytest.raises(NotFound):
        versions.delete(graph, made, second)
    pipelines.delete(graph, made, cascade=True)
    assert kept(graph) == {"one"}, "the run is still of it"
    for action in (
        lambda: pipelines.get(graph, made),
        lambda: pipelines.get_by_name(graph, "p"),
        lambda: pipelines.delete(graph, made, cascade=True),
    ):
        with pytest.raises(NotFound):
            action()
    run_queue.delete_request(graph, run)
    assert kept(graph) == set()
    empty = pipelines.create(graph, Metadata(name="p"))
    pipelines.delete(graph, empty, cascade=False)


def test_an_experiment_is_archived_with_its_runs_and_schedules(graph: Graph) -> None:
    one, other = experiments.create(graph, "one", "why"), experiments.create(graph, "other")
    with pytest.raises(Exists):
        experiments.create(graph, "one")
    made = {
        name: run_queue.queue_run(graph, run_queue.NewRun(experiment=name, name="r", spec="{}"))
        for name in (one, other)
    }
    ticking = {
        name: schedules.create(graph, schedules.NewSchedule(experiment=name, name="s", interval=60))
        for name in (one, other)
    }
    experiments.archive(graph, one)
    assert [experiments.get(graph, name).archived for name in (one, other)] == [True, False]
    assert [run_queue.get_request(graph, made[name]).archived for name in (one, other)] == [
        True,
        False,
    ]
    assert [schedules.get(graph, ticking[name]).enabled for name in (one, other)] == [False, True]
    with pytest.raises(UsageError, match="archived"):
        experiments.require_active(graph, one)
    experiments.unarchive(graph, one)
    assert experiments.require_active(graph, one) == one
    experiments.delete(graph, other)
    assert not schedules.get(graph, ticking[other]).enabled
    assert run_queue.get_request(graph, made[other]).experiment == other
    for action in (experiments.get, experiments.archive, experiments.unarchive, experiments.delete):
        with pytest.raises(NotFound):
            action(graph, other)


def test_the_default_experiment_is_there_when_it_is_needed(graph: Graph) -> None:
    first = experiments.require_active(graph, "")
    assert experiments.get(graph, first).name == experiments.DEFAULT_NAME
    assert experiments.require_active(graph, "") == first
    experiments.delete(graph, first)
    assert experiments.require_active(graph, "") != first

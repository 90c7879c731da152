"""Schedules as rows: what is kept of one, and its ticks."""

from functools import partial

import pytest

from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import schedules
from clew.server.catalogue.pipelines.schedules import NewSchedule
from clew.server.parsers.cron import SECOND

HOUR = 3600 * SECOND


def test_a_schedule_is_stored_as_requested(graph: Graph) -> None:
    made = schedules.create(
        graph,
        NewSchedule(
            experiment="x",
            name="nightly",
            cron="0 0 2 * * *",
            starts=5 * HOUR,
            ends=500 * HOUR,
            most=3,
            catchup=False,
            description="why",
            pipeline="p",
            version="v",
            spec="root: {}",
            service_account="robot",
            config={"parameters": {"n": 1}},
        ),
    )
    found = schedules.get(graph, made)
    assert (found.name, found.cron, found.interval) == ("nightly", "0 0 2 * * *", None)
    assert (found.starts, found.ends, found.next) == (5 * HOUR, 500 * HOUR, 26 * HOUR)
    assert (found.most, found.catchup, found.enabled) == (3, False, True)
    assert (found.pipeline, found.version, found.service_account) == ("p", "v", "robot")
    assert found.config == {"parameters": {"n": 1}}
    assert found.spec is not None
    assert pipeline_specs.text_of(graph, found.spec) == "root: {}"


def test_the_first_tick_of_an_interval_is_one_interval_after_the_start(graph: Graph) -> None:
    made = schedules.create(
        graph, NewSchedule(experiment="x", name="n", interval=3600, starts=7 * HOUR)
    )
    assert schedules.get(graph, made).next == 8 * HOUR


def test_without_a_start_ticks_begin_now(graph: Graph) -> None:
    found = schedules.get(
        graph, schedules.create(graph, NewSchedule(experiment="x", name="n", interval=60))
    )
    assert found.next == found.created // SECOND * SECOND + 60 * SECOND


def test_ticks_end_with_the_schedule(graph: Graph) -> None:
    asked = NewSchedule(experiment="x", name="n", interval=3600, starts=0, ends=2 * HOUR)
    found = schedules.get(graph, schedules.create(graph, asked))
    assert found.next == HOUR
    assert found.after(HOUR) == 2 * HOUR
    assert found.after(2 * HOUR) is None


@pytest.mark.parametrize(
    "asked",
    [
        NewSchedule(experiment="x", name="n", cron="0 0 0 31 2 *"),
        NewSchedule(experiment="x", name="n", interval=60, starts=0, ends=59 * SECOND),
    ],
)
def test_a_schedule_that_never_runs_is_refused(graph: Graph, asked: NewSchedule) -> None:
    with pytest.raises(UsageError, match=r"never|day-of-month"):
        schedules.create(graph, asked)


def test_switching_keeps_the_tick_that_is_not_run_yet(graph: Graph) -> None:
    made = schedules.create(graph, NewSchedule(experiment="x", name="n", interval=60, starts=0))
    for enabled in (False, True):
        schedules.set_enabled(graph, made, enabled=enabled)
        schedules.set_enabled(graph, made, enabled=enabled)
        found = schedules.get(graph, made)
        assert found.enabled is enabled
        assert found.next == 60 * SECOND
        assert found.updated > found.created


def test_a_spec_goes_with_the_last_that_is_of_it(graph: Graph) -> None:
    asked = NewSchedule(experiment="x", name="n", interval=60, spec="root: {}")
    first, second = schedules.create(graph, asked), schedules.create(graph, asked)
    digest = schedules.get(graph, first).spec
    assert digest is not None
    schedules.delete(graph, first)
    assert pipeline_specs.text_of(graph, digest) == "root: {}"
    schedules.delete(graph, second)
    assert graph.connection.row("SELECT 1 FROM spec") is None


def test_what_is_not_there_is_not_found(graph: Graph) -> None:
    for action in (schedules.get, schedules.delete, partial(schedules.set_enabled, enabled=True)):
        with pytest.raises(NotFound):
            action(graph, "0" * 32)

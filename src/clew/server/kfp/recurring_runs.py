"""`/recurringruns`, which is what Kubeflow calls schedules."""

from typing import Any

from starlette.responses import Response

from clew.db.connection_interface import Row
from clew.errors import UsageError
from clew.pipelines.runs import pipeline_specs
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue.list_fields import SCHEDULES
from clew.server.catalogue.pipelines import experiments, schedules
from clew.server.catalogue.pipelines.schedules import NewSchedule, Schedule
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, Fields, ServiceDep
from clew.server.kfp.responses import Document, GraphRouter, json_response, without_empty
from clew.server.kfp.run_templates import experiment_filter, read_template, template_fields
from clew.server.parsers import compiled_pipelines, cron

router = GraphRouter()
_MODES = {"": True, "MODE_UNSPECIFIED": True, "ENABLE": True, "DISABLE": False}
_MAX_CONCURRENCY = 10
_MAX_INTERVAL = 100 * 366 * 24 * 3600
"""Seconds. An interval of a century or more is surely a mistake."""


def _schedule_response(schedule: Schedule, **more: Any) -> Document:
    times = {"start_time": format_time(schedule.starts), "end_time": format_time(schedule.ends)}
    if schedule.cron is not None:
        trigger = {"cron_schedule": without_empty(**times, cron=schedule.cron)}
    else:
        trigger = {
            "periodic_schedule": without_empty(**times, interval_second=str(schedule.interval))
        }
    return without_empty(
        **template_fields(schedule),
        recurring_run_id=schedule.id,
        max_concurrency=str(schedule.most),
        trigger=trigger,
        mode="ENABLE" if schedule.enabled else "DISABLE",
        status="ENABLED" if schedule.enabled else "DISABLED",
        updated_at=format_time(schedule.updated),
        no_catchup=not schedule.catchup,
        **more,
    )


def _full_response(graph: Graph, schedule_id: str) -> Document:
    """With the pipeline, which lists leave out because it may be large."""
    schedule = schedules.get(graph, schedule_id)
    if schedule.spec is None:
        return _schedule_response(schedule)
    text = pipeline_specs.text_of(graph, schedule.spec)
    return _schedule_response(schedule, pipeline_spec=compiled_pipelines.to_response(text))


def _read_trigger(body: Fields) -> Document:
    """Read and check the trigger, so that every stored schedule has a next time."""
    trigger = body.object("trigger") or Fields({})
    by_cron, periodic = trigger.object("cron_schedule"), trigger.object("periodic_schedule")
    if (by_cron is None) == (periodic is None):
        raise UsageError("trigger needs one of cron_schedule and periodic_schedule")
    inner = by_cron or periodic
    assert inner is not None, "one of them is given"
    starts, ends = inner.timestamp("start_time"), inner.timestamp("end_time")
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("trigger: end_time is not after start_time")
    times: Document = {"starts": starts, "ends": ends}
    if by_cron is not None:
        cron.check(by_cron.required_name("cron"))
        return {**times, "cron": by_cron.text("cron")}
    interval = inner.integer("interval_second")
    if interval is None or not 1 <= interval <= _MAX_INTERVAL:
        raise UsageError("trigger: interval_second must be a positive number of seconds")
    return {**times, "interval": interval}


def _read_concurrency(body: Fields) -> int:
    value = body.integer("max_concurrency")
    if value is not None and not 1 <= value <= _MAX_CONCURRENCY:
        raise UsageError(f"max_concurrency must be from 1 to {_MAX_CONCURRENCY}")
    return value or 1


@router.post("/recurringruns")
def create(service: ServiceDep, body: BodyFields) -> Response:
    mode = body.text("mode")
    if mode not in _MODES:
        raise UsageError(f"mode {mode[:80]!r} must be ENABLE or DISABLE")
    trigger, most = _read_trigger(body), _read_concurrency(body)
    with service.graph() as graph:
        template, source = read_template(graph, body)
        version = (body.object("pipeline_version_reference") or body).id("pipeline_version_id")
        # Without a version, each run uses the latest one at that time.
        schedule = NewSchedule(
            **{**vars(template), "version": version or None},
            **trigger,
            enabled=_MODES[mode],
            most=most,
            catchup=not body.flag("no_catchup"),
            spec=source.spec,
        )
        return json_response(_full_response(graph, schedules.create(graph, schedule)))


@router.route_to_graph("GET", "/recurringruns")
def list_all(graph: Graph, params: Fields) -> Document:
    def show(rows: list[Row]) -> list[Document]:
        return [_schedule_response(schedules.from_row(row)) for row in rows]

    return list_page(graph, SCHEDULES, params, "recurringRuns", show, **experiment_filter(params))


@router.route_to_graph("GET", "/recurringruns/{recurring_run_id}")
def get(graph: Graph, params: Fields) -> Document:
    return _full_response(graph, params.id("recurring_run_id"))


@router.route_to_graph("DELETE", "/recurringruns/{recurring_run_id}")
def delete(graph: Graph, params: Fields) -> None:
    schedules.delete(graph, params.id("recurring_run_id"))


@router.route_to_graph("POST", "/recurringruns/{recurring_run_id}:enable")
def enable(graph: Graph, params: Fields) -> None:
    schedule = schedules.get(graph, params.id("recurring_run_id"))
    experiments.require_active(graph, schedule.experiment)
    schedules.set_enabled(graph, schedule.id, enabled=True)


@router.route_to_graph("POST", "/recurringruns/{recurring_run_id}:disable")
def disable(graph: Graph, params: Fields) -> None:
    schedules.set_enabled(graph, params.id("recurring_run_id"), enabled=False)

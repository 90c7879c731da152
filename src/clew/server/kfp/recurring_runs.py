"""`/recurringruns`: schedules, in Kubeflow's words."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.db.connection import Row
from clew.errors import UsageError
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue import experiments, pipeline_specs, schedules
from clew.server.catalogue.list_fields import SCHEDULES
from clew.server.catalogue.schedules import NewSchedule, Schedule
from clew.server.kfp import pipeline_sources
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, Fields, ServiceDep, UrlFields
from clew.server.kfp.responses import empty_response, json_response, without_empty
from clew.server.parsing import compiled_pipelines, cron

router = APIRouter()
_MODES = {"": True, "MODE_UNSPECIFIED": True, "ENABLE": True, "DISABLE": False}
_MOST_AT_ONCE = 10
_LONGEST = 100 * 366 * 24 * 3600
"""Seconds: an interval of a century is a mistake."""


def _shown(found: Schedule, **more: Any) -> dict[str, Any]:
    times = {"start_time": format_time(found.starts), "end_time": format_time(found.ends)}
    if found.cron is not None:
        trigger = {"cron_schedule": without_empty(**times, cron=found.cron)}
    else:
        trigger = {"periodic_schedule": without_empty(**times, interval_second=str(found.interval))}
    return without_empty(
        recurring_run_id=found.id,
        display_name=found.name,
        description=found.description,
        pipeline_version_reference=pipeline_sources.reference(found.pipeline, found.version),
        runtime_config=found.config,
        service_account=found.service_account,
        max_concurrency=str(found.most),
        trigger=trigger,
        mode="ENABLE" if found.enabled else "DISABLE",
        status="ENABLED" if found.enabled else "DISABLED",
        created_at=format_time(found.created),
        updated_at=format_time(found.updated),
        no_catchup=not found.catchup,
        experiment_id=found.experiment,
        **more,
    )


def _whole(graph: Graph, schedule: str) -> dict[str, Any]:
    found = schedules.get(graph, schedule)
    if found.spec is None:
        return _shown(found)
    return _shown(
        found,
        pipeline_spec=compiled_pipelines.to_response(pipeline_specs.text_of(graph, found.spec)),
    )


def _when(sent: Fields) -> dict[str, Any]:
    """The trigger: looked at here, so that none is kept that cannot tick."""
    trigger = sent.part("trigger") or Fields({})
    by_cron, by_time = trigger.part("cron_schedule"), trigger.part("periodic_schedule")
    if (by_cron is None) == (by_time is None):
        raise UsageError("trigger needs one of cron_schedule and periodic_schedule")
    inner = by_cron or by_time
    assert inner is not None, "one of them is given"
    starts, ends = inner.moment("start_time"), inner.moment("end_time")
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("trigger: end_time is not after start_time")
    when: dict[str, Any] = {"starts": starts, "ends": ends}
    if by_cron is not None:
        cron.check(by_cron.named("cron"))
        return {**when, "cron": by_cron.text("cron")}
    interval = inner.whole("interval_second")
    if interval is None or not 1 <= interval <= _LONGEST:
        raise UsageError("trigger: interval_second is no number of seconds from 1 on")
    return {**when, "interval": interval}


def _most(sent: Fields) -> int:
    found = sent.whole("max_concurrency")
    if found is not None and not 1 <= found <= _MOST_AT_ONCE:
        raise UsageError(f"max_concurrency is not from 1 to {_MOST_AT_ONCE}")
    return found or 1


@router.post("/recurringruns")
def create(service: ServiceDep, sent: BodyFields) -> Response:
    name, mode = sent.named("display_name"), sent.text("mode")
    if mode not in _MODES:
        raise UsageError(f"mode {mode[:80]!r} is neither ENABLE nor DISABLE")
    when, most = _when(sent), _most(sent)
    with service.graph() as graph:
        source = pipeline_sources.found(graph, sent)
        version = (sent.part("pipeline_version_reference") or sent).id("pipeline_version_id")
        asked = NewSchedule(
            experiment=experiments.require_active(graph, sent.id("experiment_id")),
            name=name,
            description=sent.text("description"),
            enabled=_MODES[mode],
            most=most,
            catchup=not sent.flag("no_catchup"),
            spec=source.spec,
            pipeline=source.pipeline,
            version=version or None,  # without one, the newest there is at each tick
            service_account=sent.text("service_account"),
            config=pipeline_sources.config(sent),
            **when,
        )
        return json_response(_whole(graph, schedules.create(graph, asked)))


@router.get("/recurringruns")
def list_(service: ServiceDep, asked: UrlFields) -> Response:
    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [_shown(schedules.from_row(row)) for row in rows]

    of = asked.id("experiment_id")
    within = {"experiment": of} if of else {}
    with service.graph() as graph:
        return json_response(list_page(graph, SCHEDULES, asked, "recurringRuns", show, **within))


@router.get("/recurringruns/{recurring_run_id}")
def get(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(_whole(graph, asked.id("recurring_run_id")))


@router.delete("/recurringruns/{recurring_run_id}")
def delete(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        schedules.delete(graph, asked.id("recurring_run_id"))
    return empty_response()


@router.post("/recurringruns/{recurring_run_id}:enable")
def enable(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        found = schedules.get(graph, asked.id("recurring_run_id"))
        experiments.require_active(graph, found.experiment)
        schedules.enable(graph, found.id)
    return empty_response()


@router.post("/recurringruns/{recurring_run_id}:disable")
def disable(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        schedules.disable(graph, asked.id("recurring_run_id"))
    return empty_response()

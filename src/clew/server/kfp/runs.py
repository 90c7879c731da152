"""`/runs`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.api.local.project import LocalProject
from clew.db.connection import Row
from clew.errors import NotFound, UsageError
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue import experiments, pipeline_specs, runs
from clew.server.catalogue.list_fields import RUNS
from clew.server.catalogue.runs import FINAL_STATES, NewRun, Run
from clew.server.kfp import pipeline_sources, tasks
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, ServiceDep, UrlFields
from clew.server.kfp.responses import empty_response, grpc_status, json_response, without_empty
from clew.server.parsing import compiled_pipelines

router = APIRouter()
_STATES = {"queued": "PENDING", "running": "RUNNING", "succeeded": "SUCCEEDED"}


def _state(run: Run) -> str:
    """The stock client waits for no end called CANCELED, so whatever was ended has failed."""
    if run.state == "running" and run.stop:
        return "CANCELING"
    return _STATES.get(run.state, "FAILED")


def _shown(run: Run, **more: Any) -> dict[str, Any]:
    over = run.state in FINAL_STATES
    return without_empty(
        experiment_id=run.experiment,
        run_id=run.id,
        display_name=run.name,
        storage_state="ARCHIVED" if run.archived else "AVAILABLE",
        description=run.description,
        pipeline_version_reference=pipeline_sources.reference(run.pipeline, run.version),
        runtime_config={n: v for n, v in run.config.items() if n != "options"},
        service_account=run.service_account,
        created_at=format_time(run.created),
        scheduled_at=format_time(run.scheduled if run.scheduled is not None else run.created),
        finished_at=format_time(run.finished) if over else None,
        state=_state(run),
        error=grpc_status(run.error) if over else None,
        recurring_run_id=run.schedule,
        state_history=_history(run),
        **more,
    )


def _history(run: Run) -> list[dict[str, Any]]:
    found = [without_empty(update_time=format_time(run.created), state="PENDING")]
    if run.began is not None:
        found.append(without_empty(update_time=format_time(run.began), state="RUNNING"))
    if run.state in FINAL_STATES:
        last = {"update_time": format_time(run.finished), "state": _state(run)}
        found.append(without_empty(**last, error=grpc_status(run.error)))
    return found


def _whole(project: LocalProject, run: str) -> dict[str, Any]:
    """All there is to say of a run: also what it is of, and how its tasks went."""
    graph = project.graph
    found = runs.get(graph, run)
    more: dict[str, Any] = {}
    if found.pipeline is None:
        more["pipeline_spec"] = compiled_pipelines.to_response(
            pipeline_specs.text_of(graph, found.spec)
        )
    with suppress(NotFound):  # of one that has not begun nothing is recorded
        more["run_details"] = {"task_details": tasks.task_details(run, project.pipelines.show(run))}
    return _shown(found, **more)


@router.post("/runs")
def create(service: ServiceDep, sent: BodyFields) -> Response:
    name, description = sent.named("display_name"), sent.text("description")
    config, account = pipeline_sources.config(sent), sent.text("service_account")
    with service.project() as project:
        graph = project.graph
        source = pipeline_sources.found(graph, sent)
        asked = NewRun(
            experiment=experiments.require_active(graph, sent.id("experiment_id")),
            name=name,
            description=description,
            spec=source.text(graph),
            pipeline=source.pipeline,
            version=source.version,
            config=config,
            service_account=account,
        )
        made = runs.create(graph, asked)
        service.work.set()
        return json_response(_whole(project, made))


@router.get("/runs")
def list_(service: ServiceDep, asked: UrlFields) -> Response:
    """Without what each is of: these may be large, and are given by the run itself."""

    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [_shown(runs.from_row(row)) for row in rows]

    of = asked.id("experiment_id")
    within = {"experiment": of} if of else {}
    with service.graph() as graph:
        return json_response(list_page(graph, RUNS, asked, "runs", show, **within))


@router.get("/runs/{run_id}")
def get(service: ServiceDep, asked: UrlFields) -> Response:
    with service.project() as project:
        return json_response(_whole(project, asked.id("run_id")))


@router.delete("/runs/{run_id}")
def delete(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        runs.delete(graph, asked.id("run_id"))
    return empty_response()


@router.post("/runs/{run_id}:terminate")
def terminate(service: ServiceDep, asked: UrlFields) -> Response:
    """Also of one that is over, which stays as it is: whoever cleans up need not ask before."""
    with service.graph() as graph:
        runs.cancel(graph, asked.id("run_id"))
    service.work.set()
    return empty_response()


@router.post("/runs/{run_id}:retry")
def retry(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        runs.resume(graph, asked.id("run_id"))
    service.work.set()
    return empty_response()


@router.post("/runs/{run_id}:archive")
def archive(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        runs.archive(graph, asked.id("run_id"), archived=True)
    return empty_response()


@router.post("/runs/{run_id}:unarchive")
def unarchive(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        found = runs.get(graph, asked.id("run_id"))
        if _archived(graph, found.experiment):
            raise UsageError(
                "the run's experiment is archived",
                hint=f"kfp experiment unarchive --experiment-id {found.experiment}",
            )
        runs.archive(graph, found.id, archived=False)
    return empty_response()


def _archived(graph: Graph, experiment: str) -> bool:
    try:
        return experiments.get(graph, experiment).archived
    except NotFound:
        return False

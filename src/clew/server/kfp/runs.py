"""`/runs`."""

from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.api.local.project import LocalProject
from clew.db.connection import Row
from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs, run_queue
from clew.pipelines.runs.run_queue import NewRun, RunRequest
from clew.pipelines.runs.run_states import FINAL_STATES
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue import experiments
from clew.server.catalogue.list_fields import RUNS
from clew.server.kfp import tasks
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, ServiceDep, UrlFields
from clew.server.kfp.responses import empty_response, grpc_status, json_response, without_empty
from clew.server.kfp.run_templates import read_template, template_fields
from clew.server.parsing import compiled_pipelines

router = APIRouter()
_STATES = {"queued": "PENDING", "running": "RUNNING", "succeeded": "SUCCEEDED"}


def _state(run: RunRequest) -> str:
    """Canceled runs are reported as FAILED: Kubeflow's client does not stop waiting at CANCELED."""
    if run.state == "running" and run.stop:
        return "CANCELING"
    return _STATES.get(run.state, "FAILED")


def _run_response(run: RunRequest, **details: Any) -> dict[str, Any]:
    finished = run.state in FINAL_STATES
    return without_empty(
        **template_fields(run),
        run_id=run.id,
        storage_state="ARCHIVED" if run.archived else "AVAILABLE",
        scheduled_at=format_time(run.scheduled if run.scheduled is not None else run.created),
        finished_at=format_time(run.finished) if finished else None,
        state=_state(run),
        error=grpc_status(run.error) if finished else None,
        recurring_run_id=run.schedule,
        state_history=_history(run),
        **details,
    )


def _history(run: RunRequest) -> list[dict[str, Any]]:
    history = [without_empty(update_time=format_time(run.created), state="PENDING")]
    if run.began is not None:
        history.append(without_empty(update_time=format_time(run.began), state="RUNNING"))
    if run.state in FINAL_STATES:
        last = {"update_time": format_time(run.finished), "state": _state(run)}
        history.append(without_empty(**last, error=grpc_status(run.error)))
    return history


def _full_response(project: LocalProject, run_id: str) -> dict[str, Any]:
    """With the pipeline and the tasks."""
    graph = project.graph
    run = run_queue.get_request(graph, run_id)
    details: dict[str, Any] = {}
    if run.pipeline is None:
        details["pipeline_spec"] = compiled_pipelines.to_response(
            pipeline_specs.text_of(graph, run.spec)
        )
    with suppress(NotFound):  # a run that has not started has no record
        details["run_details"] = {
            "task_details": tasks.task_details(run_id, project.pipelines.show(run_id))
        }
    return _run_response(run, **details)


@router.post("/runs")
def create(service: ServiceDep, body: BodyFields) -> Response:
    with service.project() as project:
        graph = project.graph
        template, source = read_template(graph, body)
        created = run_queue.queue_run(graph, NewRun(**vars(template), spec=source.text(graph)))
        service.work_available.set()
        return json_response(_full_response(project, created))


@router.get("/runs")
def list_(service: ServiceDep, params: UrlFields) -> Response:
    """Without the pipelines, which may be large: a request for a single run returns its own."""

    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [_run_response(run_queue.from_row(row)) for row in rows]

    experiment = params.id("experiment_id")
    within = {"experiment": experiment} if experiment else {}
    with service.graph() as graph:
        return json_response(list_page(graph, RUNS, params, "runs", show, **within))


@router.get("/runs/{run_id}")
def get(service: ServiceDep, params: UrlFields) -> Response:
    with service.project() as project:
        return json_response(_full_response(project, params.id("run_id")))


@router.delete("/runs/{run_id}")
def delete(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        run_queue.delete_request(graph, params.id("run_id"))
    service.work_available.set()
    return empty_response()


@router.post("/runs/{run_id}:terminate")
def terminate(service: ServiceDep, params: UrlFields) -> Response:
    """Does nothing if the run has ended, so that clean-up scripts need not check first."""
    with service.graph() as graph:
        run_queue.cancel_request(graph, params.id("run_id"))
    service.work_available.set()
    return empty_response()


@router.post("/runs/{run_id}:retry")
def retry(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        run_queue.requeue_finished(graph, params.id("run_id"))
    service.work_available.set()
    return empty_response()


@router.post("/runs/{run_id}:archive")
def archive(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        run_queue.archive_request(graph, params.id("run_id"), archived=True)
    return empty_response()


@router.post("/runs/{run_id}:unarchive")
def unarchive(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        run = run_queue.get_request(graph, params.id("run_id"))
        if _is_archived(graph, run.experiment):
            raise UsageError(
                "the run's experiment is archived",
                hint=f"kfp experiment unarchive --experiment-id {run.experiment}",
            )
        run_queue.archive_request(graph, run.id, archived=False)
    return empty_response()


def _is_archived(graph: Graph, experiment: str) -> bool:
    try:
        return experiments.get(graph, experiment).archived
    except NotFound:
        return False

"""`/runs`."""

from contextlib import suppress
from typing import Any

from starlette.responses import Response

from clew.api.local.project import LocalProject
from clew.db.connection_interface import Row
from clew.documents.ids import Uid
from clew.errors import NotFound
from clew.pipelines.runs import pipeline_specs, run_queue
from clew.pipelines.runs.run_queue import NewRun, RunRequest
from clew.pipelines.runs.run_states import FINAL_STATES
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue.list_fields import RUNS
from clew.server.catalogue.pipelines import experiments
from clew.server.kfp import tasks
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, Fields, ServiceDep, UrlFields
from clew.server.kfp.responses import (
    Document,
    GraphRouter,
    grpc_status,
    json_response,
    without_empty,
)
from clew.server.kfp.run_templates import experiment_filter, read_template, template_fields
from clew.server.parsers import compiled_pipelines

router = GraphRouter()
_STATES = {"queued": "PENDING", "running": "RUNNING", "succeeded": "SUCCEEDED"}


def _state(run: RunRequest) -> str:
    """Canceled runs are reported as FAILED: Kubeflow's client does not stop waiting at CANCELED."""
    if run.state == "running" and run.stop:
        return "CANCELING"
    return _STATES.get(run.state, "FAILED")


def _run_response(run: RunRequest, **details: Any) -> Document:
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


def _history(run: RunRequest) -> list[Document]:
    history = [without_empty(update_time=format_time(run.created), state="PENDING")]
    if run.began is not None:
        history.append(without_empty(update_time=format_time(run.began), state="RUNNING"))
    if run.state in FINAL_STATES:
        last = {"update_time": format_time(run.finished), "state": _state(run)}
        history.append(without_empty(**last, error=grpc_status(run.error)))
    return history


def _full_response(project: LocalProject, run_id: Uid) -> Document:
    """With the pipeline and the tasks."""
    graph = project.graph
    run = run_queue.get_request(graph, run_id)
    details: Document = {}
    if run.pipeline is None:
        text = pipeline_specs.text_of(graph, run.spec)
        details["pipeline_spec"] = compiled_pipelines.to_response(text)
    with suppress(NotFound):  # a run that has not started has no record
        found = tasks.task_details(run_id, project.pipelines.show(run_id))
        details["run_details"] = {"task_details": found}
    return _run_response(run, **details)


@router.post("/runs")
def create(service: ServiceDep, body: BodyFields) -> Response:
    with service.project() as project:
        graph = project.graph
        template, source = read_template(graph, body)
        created = run_queue.queue_run(graph, NewRun(**vars(template), spec=source.text(graph)))
        service.work_available.set()
        return json_response(_full_response(project, created))


@router.route_to_graph("GET", "/runs")
def list_all(graph: Graph, params: Fields) -> Document:
    """Without the pipelines, which may be large: a request for a single run returns its own."""

    def show(rows: list[Row]) -> list[Document]:
        return [_run_response(run_queue.from_row(row)) for row in rows]

    return list_page(graph, RUNS, params, "runs", show, **experiment_filter(params))


@router.get("/runs/{run_id}")
def get(service: ServiceDep, params: UrlFields) -> Response:
    with service.project() as project:
        return json_response(_full_response(project, Uid(params.id("run_id"))))


@router.route_to_graph("DELETE", "/runs/{run_id}", wakes_workers=True)
def delete(graph: Graph, params: Fields) -> None:
    run_queue.delete_request(graph, Uid(params.id("run_id")))


@router.route_to_graph("POST", "/runs/{run_id}:terminate", wakes_workers=True)
def terminate(graph: Graph, params: Fields) -> None:
    """Does nothing if the run has ended, so that clean-up scripts need not check first."""
    run_queue.cancel_request(graph, Uid(params.id("run_id")))


@router.route_to_graph("POST", "/runs/{run_id}:retry", wakes_workers=True)
def retry(graph: Graph, params: Fields) -> None:
    run_queue.requeue_finished(graph, Uid(params.id("run_id")))


@router.route_to_graph("POST", "/runs/{run_id}:archive")
def archive(graph: Graph, params: Fields) -> None:
    run_queue.archive_request(graph, Uid(params.id("run_id")), archived=True)


@router.route_to_graph("POST", "/runs/{run_id}:unarchive")
def unarchive(graph: Graph, params: Fields) -> None:
    run = run_queue.get_request(graph, Uid(params.id("run_id")))
    with suppress(NotFound):  # the experiment was deleted
        experiments.require_active(graph, run.experiment)
    run_queue.archive_request(graph, run.id, archived=False)

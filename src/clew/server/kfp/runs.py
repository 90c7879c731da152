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
from clew.prov.queries.formats import moment
from clew.server.catalogue import experiments, pipeline_specs, runs
from clew.server.catalogue.list_fields import RUNS
from clew.server.catalogue.runs import OVER, Asked, Run
from clew.server.kfp import pipeline_sources, tasks
from clew.server.kfp.list_query import listed
from clew.server.kfp.request_fields import Address, Body, Served
from clew.server.kfp.responses import answer, failure, nothing, shown
from clew.server.parsing import compiled_pipelines

router = APIRouter()
_STATES = {"queued": "PENDING", "running": "RUNNING", "succeeded": "SUCCEEDED"}


def _state(run: Run) -> str:
    """The stock client waits for no end called CANCELED, so whatever was ended has failed."""
    if run.state == "running" and run.stop:
        return "CANCELING"
    return _STATES.get(run.state, "FAILED")


def _shown(run: Run, **more: Any) -> dict[str, Any]:
    over = run.state in OVER
    return shown(
        experiment_id=run.experiment,
        run_id=run.id,
        display_name=run.name,
        storage_state="ARCHIVED" if run.archived else "AVAILABLE",
        description=run.description,
        pipeline_version_reference=pipeline_sources.reference(run.pipeline, run.version),
        runtime_config={n: v for n, v in run.config.items() if n != "options"},
        service_account=run.service_account,
        created_at=moment(run.created),
        scheduled_at=moment(run.scheduled if run.scheduled is not None else run.created),
        finished_at=moment(run.finished) if over else None,
        state=_state(run),
        error=failure(run.error) if over else None,
        recurring_run_id=run.schedule,
        state_history=_history(run),
        **more,
    )


def _history(run: Run) -> list[dict[str, Any]]:
    found = [shown(update_time=moment(run.created), state="PENDING")]
    if run.began is not None:
        found.append(shown(update_time=moment(run.began), state="RUNNING"))
    if run.state in OVER:
        last = {"update_time": moment(run.finished), "state": _state(run)}
        found.append(shown(**last, error=failure(run.error)))
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
        more["run_details"] = {"task_details": tasks.details(run, project.pipelines.show(run))}
    return _shown(found, **more)


@router.post("/runs")
def create(service: Served, sent: Body) -> Response:
    name, description = sent.named("display_name"), sent.text("description")
    config, account = pipeline_sources.config(sent), sent.text("service_account")
    with service.project() as project:
        graph = project.graph
        source = pipeline_sources.found(graph, sent)
        asked = Asked(
            experiment=experiments.open_for(graph, sent.id("experiment_id")),
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
        return answer(_whole(project, made))


@router.get("/runs")
def list_(service: Served, asked: Address) -> Response:
    """Without what each is of: these may be large, and are given by the run itself."""

    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [_shown(runs.read(row)) for row in rows]

    of = asked.id("experiment_id")
    within = {"experiment": of} if of else {}
    with service.graph() as graph:
        return answer(listed(graph, RUNS, asked, "runs", show, **within))


@router.get("/runs/{run_id}")
def get(service: Served, asked: Address) -> Response:
    with service.project() as project:
        return answer(_whole(project, asked.id("run_id")))


@router.delete("/runs/{run_id}")
def delete(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        runs.delete(graph, asked.id("run_id"))
    return nothing()


@router.post("/runs/{run_id}:terminate")
def terminate(service: Served, asked: Address) -> Response:
    """Also of one that is over, which stays as it is: whoever cleans up need not ask before."""
    with service.graph() as graph:
        runs.stop(graph, asked.id("run_id"))
    service.work.set()
    return nothing()


@router.post("/runs/{run_id}:retry")
def retry(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        runs.retry(graph, asked.id("run_id"))
    service.work.set()
    return nothing()


@router.post("/runs/{run_id}:archive")
def archive(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        runs.archive(graph, asked.id("run_id"), archived=True)
    return nothing()


@router.post("/runs/{run_id}:unarchive")
def unarchive(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        found = runs.get(graph, asked.id("run_id"))
        if _archived(graph, found.experiment):
            raise UsageError(
                "the run's experiment is archived",
                hint=f"kfp experiment unarchive --experiment-id {found.experiment}",
            )
        runs.archive(graph, found.id, archived=False)
    return nothing()


def _archived(graph: Graph, experiment: str) -> bool:
    try:
        return experiments.get(graph, experiment).archived
    except NotFound:
        return False

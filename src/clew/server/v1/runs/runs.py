"""Pipeline runs: queue, show, cancel and resume them; their tasks, artifacts and metrics."""

import math
import re
from typing import Annotated

from fastapi import Path, Query

from clew.documents.ids import TaskId, Uid
from clew.documents.pipelines.runs import (
    Artifacts,
    Metrics,
    Run,
    RunArtifact,
    Runs,
    RunWithTasks,
    Task,
    TaskMetrics,
    Tasks,
    Why,
)
from clew.errors import NotAllowed, NotFound, UsageError
from clew.pipelines.runs import perform, run_list, run_queue
from clew.pipelines.runs.run_list import Position
from clew.server.catalogue.idempotent_requests import make_once
from clew.server.run_preparation import prepare_run
from clew.server.v1.dependencies import IdempotencyKey, Limit, ProjectDep, ServiceDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.runs.request_bodies import ResumeRequest, RunRequest

router = DocumentRouter(tags=["runs"])

Id = Annotated[Text, Path(description="`r1`, or its uid.", examples=["r1"])]
TaskName = Annotated[
    Text, Path(description="The task's name, with the groups that contain it.", examples=["train"])
]
_POSITION = re.compile(r"(\d{1,19})-([0-9a-f]{0,64})")
_METRICS = "system.Metrics"


@router.get("/runs")
def list_runs(
    project: ProjectDep,
    limit: Limit = 50,
    after: Annotated[str | None, Query(pattern=r"^[0-9]{1,19}-[0-9a-f]{0,64}$")] = None,
) -> Runs:
    position = Position()
    if after and (match := _POSITION.fullmatch(after)):
        position = Position(min(int(match[1]), position.at), Uid(match[2]))
    positions = run_list.list_positions(project.graph, position, limit + 1)
    last = positions[limit - 1] if len(positions) > limit else None
    runs = tuple(_get_summary(project, listed.uid) for listed in positions[:limit])
    return Runs(runs=runs, next=f"{last.at}-{last.uid}" if last else None)


def _get_summary(project: ProjectDep, run: str) -> Run:
    return run_list.get_run_summary(project.graph, run, alive=project.is_alive)


def _get_run(project: ProjectDep, run: str) -> RunWithTasks:
    return run_list.get_run(project.graph, run, alive=project.is_alive)


@router.post("/runs", status_code=201)
def create_run(
    service: ServiceDep,
    project: ProjectDep,
    request: RunRequest,
    idempotency_key: IdempotencyKey = None,
) -> RunWithTasks:
    """Queue a run of a compiled pipeline."""
    fields = request.model_dump()
    if fields.pop("on_host") and not service.on_host:
        raise NotAllowed(
            "this server runs container components only in their images",
            hint="start the server with --on-host to run them as processes",
        )
    graph = project.graph
    run = prepare_run(graph, **fields)
    key = idempotency_key and f"runs {idempotency_key}"
    uid = make_once(graph, key, fields, lambda: run_queue.insert_run(graph, run))
    service.work_available.set()
    return _get_run(project, uid)


@router.get("/runs/{id}")
def get_run(project: ProjectDep, id: Id) -> RunWithTasks:  # noqa: A002
    return _get_run(project, id)


@router.post("/runs/{id}/cancel", status_code=202)
def cancel_run(project: ProjectDep, id: Id) -> RunWithTasks:  # noqa: A002
    """Cancel a run, without waiting for its end. A run that has ended stays as it is."""
    uid = run_list.find_uid(project.graph, id)
    perform.cancel_run(project, uid)
    return _get_run(project, uid)


@router.post("/runs/{id}/resume", status_code=202)
def resume_run(
    service: ServiceDep,
    project: ProjectDep,
    id: Id,  # noqa: A002
    request: ResumeRequest | None = None,
) -> RunWithTasks:
    """Resume a failed or canceled run. Finished tasks are not repeated."""
    uid = run_list.find_uid(project.graph, id)
    if run_list.find_request(project.graph, uid) is None:
        raise UsageError(
            f"{id} was started with the CLI, not by a server", hint=f"clew pipeline resume {id}"
        )
    run_queue.requeue_finished(project.graph, uid, jobs=request.jobs if request else None)
    service.work_available.set()
    return _get_run(project, uid)


@router.get("/runs/{id}/tasks")
def list_tasks(project: ProjectDep, id: Id) -> Tasks:  # noqa: A002
    return Tasks(tasks=_get_run(project, id).tasks)


@router.get("/runs/{id}/artifacts")
def list_artifacts(project: ProjectDep, id: Id) -> Artifacts:  # noqa: A002
    """The artifacts of all tasks. `version` names the content of a single-file artifact."""
    return Artifacts(
        artifacts=tuple(
            RunArtifact(
                id=f"{task.id}:{name}",
                task=task.id,
                name=name,
                uri=artifact.uri,
                type=artifact.type,
                digest=artifact.digest,
                size=artifact.size,
                metadata=artifact.metadata,
                version=artifact.version,
            )
            for task in _get_run(project, id).tasks
            for name, artifacts in task.artifacts.items()
            for artifact in artifacts
        )
    )


@router.get("/runs/{id}/metrics")
def get_metrics(project: ProjectDep, id: Id) -> Metrics:  # noqa: A002
    """The numeric outputs and metrics of the tasks."""
    run = _get_run(project, id)
    metrics = tuple(
        TaskMetrics(task=task.id, state=task.state, values=values)
        for task in run.tasks
        if (values := _numbers(task))
    )
    return Metrics(run=run.id or run.uid, metrics=metrics)


@router.get("/tasks/{run}/{task:path}/why")
def get_why(project: ProjectDep, run: Id, task: TaskName) -> Why:
    """Why the task ran or was reused, fact by fact."""
    return project.pipelines.why(full_task_id(project, run, task))


@router.get("/tasks/{run}/{task:path}")
def get_task(project: ProjectDep, run: Id, task: TaskName) -> Task:
    return project.pipelines.task(full_task_id(project, run, task))


def full_task_id(project: ProjectDep, run: str, task: str) -> TaskId:
    """`r1/train`, also if `run` is a uid."""
    document = _get_summary(project, run)
    if document.id is None:
        raise NotFound(f"the run {run} has not started", hint="try again when it is running")
    return TaskId(f"{document.id}/{task}")


def _numbers(task: Task) -> dict[str, float]:
    numbers = {name: value for name, value in task.outputs.items() if _is_number(value)}
    for name, artifacts in task.artifacts.items():
        for artifact in artifacts:
            if artifact.type.startswith(_METRICS):
                numbers |= {
                    f"{name}.{key}": value
                    for key, value in artifact.metadata.items()
                    if _is_number(value)
                }
    return numbers


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

"""Pipeline runs: queue, show, cancel and resume them; their tasks, artifacts and metrics."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import JSONResponse, Response

from clew.errors import NotAllowed, NotFound, UsageError
from clew.pipelines.runs import perform, run_list, run_queue
from clew.pipelines.runs.run_list import Position
from clew.server.run_requests import queue_run
from clew.server.v1 import run_schemas
from clew.server.v1.dependencies import Limit, ProjectDep, ServiceDep, Text

router = APIRouter(tags=["runs"])

Id = Annotated[Text, Path(description="`r1`, or its uid.", examples=["r1"])]
TaskName = Annotated[
    Text, Path(description="The task's name, with the groups that contain it.", examples=["train"])
]
_POSITION = re.compile(r"(\d{1,19})-([0-9a-f]{0,64})")
_METRICS = "system.Metrics"


@router.get("/runs", response_model=run_schemas.Runs)
def list_runs(
    project: ProjectDep,
    limit: Limit = 50,
    after: Annotated[str | None, Query(pattern=r"^[0-9]{1,19}-[0-9a-f]{0,64}$")] = None,
) -> Any:
    position = Position()
    if after and (match := _POSITION.fullmatch(after)):
        position = Position(min(int(match[1]), position.at), match[2])
    positions = run_list.list_positions(project.graph, position, limit + 1)
    last = positions[limit - 1] if len(positions) > limit else None
    runs = [_get_run(project, listed.uid, tasks=False) for listed in positions[:limit]]
    return _same_as_cli({"runs": runs, "next": f"{last.at}-{last.uid}" if last else None})


def _same_as_cli(document: dict[str, Any]) -> Response:
    """The JSON that the command line prints in the project: a model would reorder the fields."""
    return JSONResponse(document)


def _get_run(project: ProjectDep, run: str, *, tasks: bool = True) -> dict[str, Any]:
    return run_list.get_run(project.graph, run, alive=project.is_alive, tasks=tasks)


@router.post("/runs", response_model=run_schemas.RunWithTasks, status_code=201)
def create_run(service: ServiceDep, project: ProjectDep, request: run_schemas.RunRequest) -> Any:
    """Queue a run of a compiled pipeline."""
    fields = request.model_dump()
    if fields.pop("on_host") and not service.on_host:
        raise NotAllowed(
            "this server runs container components only in their images",
            hint="start the server with --on-host to run them as processes",
        )
    uid = queue_run(project.graph, **fields)
    service.work_available.set()
    return _get_run(project, uid)


@router.get("/runs/{id}", response_model=run_schemas.RunWithTasks)
def get_run(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    return _same_as_cli(_get_run(project, id))


@router.post("/runs/{id}/cancel", response_model=run_schemas.RunWithTasks, status_code=202)
def cancel_run(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    """Cancel a run, without waiting for its end. A run that has ended stays as it is."""
    uid = run_list.find_uid(project.graph, id)
    perform.cancel_run(project, uid)
    return _get_run(project, uid)


@router.post("/runs/{id}/resume", response_model=run_schemas.RunWithTasks, status_code=202)
def resume_run(
    service: ServiceDep,
    project: ProjectDep,
    id: Id,  # noqa: A002
    request: run_schemas.ResumeRequest | None = None,
) -> Any:
    """Resume a failed or canceled run. Finished tasks are not repeated."""
    uid = run_list.find_uid(project.graph, id)
    if run_list.find_request(project.graph, uid) is None:
        raise UsageError(
            f"{id} was started with the CLI, not by a server", hint=f"clew pipeline resume {id}"
        )
    run_queue.requeue_finished(project.graph, uid, jobs=request.jobs if request else None)
    service.work_available.set()
    return _get_run(project, uid)


@router.get("/runs/{id}/tasks", response_model=run_schemas.Tasks)
def list_tasks(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    return {"tasks": _get_run(project, id)["tasks"]}


@router.get("/runs/{id}/artifacts", response_model=run_schemas.Artifacts)
def list_artifacts(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    """The artifacts of all tasks. `version` names the content of a single-file artifact."""
    return {
        "artifacts": [
            {
                "id": f"{task['id']}:{name}",
                "task": task["id"],
                **{key: artifact.get(key) for key in ("uri", "type", "digest", "size", "version")},
                "name": name,
                "metadata": artifact.get("metadata") or {},
            }
            for task in _get_run(project, id)["tasks"]
            for name, artifacts in task["artifacts"].items()
            for artifact in artifacts
        ]
    }


@router.get("/runs/{id}/metrics", response_model=run_schemas.Metrics)
def get_metrics(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    """The numeric outputs and metrics of the tasks."""
    run = _get_run(project, id)
    metrics = [
        {"task": task["id"], "state": task["state"], "values": values}
        for task in run["tasks"]
        if (values := _numbers(task))
    ]
    return {"run": run["id"] or run["uid"], "metrics": metrics}


@router.get("/tasks/{run}/{task:path}/why", response_model=run_schemas.Why)
def get_why(project: ProjectDep, run: Id, task: TaskName) -> Any:
    """Why the task ran or was reused, fact by fact."""
    return project.pipelines.why(full_task_id(project, run, task))


@router.get("/tasks/{run}/{task:path}", response_model=run_schemas.Task)
def get_task(project: ProjectDep, run: Id, task: TaskName) -> Any:
    return project.pipelines.task(full_task_id(project, run, task))


def full_task_id(project: ProjectDep, run: str, task: str) -> str:
    """`r1/train`, also if `run` is a uid."""
    document = _get_run(project, run, tasks=False)
    if document["id"] is None:
        raise NotFound(f"the run {run} has not started", hint="try again when it is running")
    return f"{document['id']}/{task}"


def _numbers(task: dict[str, Any]) -> dict[str, float]:
    numbers = {name: value for name, value in task["outputs"].items() if _is_number(value)}
    for name, artifacts in task["artifacts"].items():
        for artifact in artifacts:
            if artifact["type"].startswith(_METRICS):
                numbers |= {
                    f"{name}.{key}": value
                    for key, value in (artifact.get("metadata") or {}).items()
                    if _is_number(value)
                }
    return numbers


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

"""Pipeline runs: ask for one, see how it goes, stop it, go on with it."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from clew.errors import NotAllowed, NotFound, UsageError
from clew.server import run_requests
from clew.server.catalogue import run_list, runs
from clew.server.catalogue.run_list import Position
from clew.server.v1 import run_schemas
from clew.server.v1.dependencies import Limit, ProjectDep, ServiceDep, Text

router = APIRouter(tags=["runs"])

Id = Annotated[Text, Path(description="`r1`, or its uid.", examples=["r1"])]
TaskName = Annotated[
    Text, Path(description="The task's name, with those it lies within.", examples=["train"])
]
_PLACE = re.compile(r"(\d{1,19})-([0-9a-f]{0,64})")
_METRICS = "system.Metrics"


@router.get("/runs", response_model=run_schemas.Runs)
def list_runs(
    project: ProjectDep,
    limit: Limit = 50,
    after: Annotated[str | None, Query(pattern=r"^[0-9]{1,19}-[0-9a-f]{0,64}$")] = None,
) -> Any:
    place = Position()
    if after and (found := _PLACE.fullmatch(after)):
        place = Position(min(int(found[1]), place.at), found[2])
    places = run_list.list_runs(project.graph, place, limit + 1)
    last = places[limit - 1] if len(places) > limit else None
    return {
        "runs": [
            run_requests.run_document(project, one.uid, tasks=False) for one in places[:limit]
        ],
        "next": f"{last.at}-{last.uid}" if last else None,
    }


@router.post("/runs", response_model=run_schemas.RunWithTasks, status_code=201)
def create_run(service: ServiceDep, project: ProjectDep, wanted: run_schemas.RunRequest) -> Any:
    """Queue a run of a compiled pipeline."""
    words = wanted.model_dump()
    if words.pop("on_host") and not service.on_host:
        raise NotAllowed(
            "this server runs container components in their images alone",
            hint="clew server --on-host, there, lets them be processes of its machine",
        )
    uid = run_requests.queue_run(project.graph, **words)
    service.work_available.set()
    return run_requests.run_document(project, uid)


@router.get("/runs/{id}", response_model=run_schemas.RunWithTasks)
def get_run(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    return run_requests.run_document(project, id)


@router.post("/runs/{id}/cancel", response_model=run_schemas.RunWithTasks, status_code=202)
def cancel_run(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    """Let it end; one that is over stays as it is. The answer does not wait for the end."""
    uid = run_requests.find_run_uid(project.graph, id)
    if run_list.find_request(project.graph, uid) is not None:
        runs.cancel(project.graph, uid)
    else:
        project.pipelines.stop(uid)
    return run_requests.run_document(project, uid)


@router.post("/runs/{id}/resume", response_model=run_schemas.RunWithTasks, status_code=202)
def resume_run(
    service: ServiceDep,
    project: ProjectDep,
    id: Id,  # noqa: A002
    wanted: run_schemas.ResumeRequest | None = None,
) -> Any:
    """Go on with a run that failed or was canceled: what is done stays done."""
    uid = run_requests.find_run_uid(project.graph, id)
    if run_list.find_request(project.graph, uid) is None:
        raise UsageError(
            f"{id} was run by hand, not asked of a server", hint=f"clew pipeline resume {id}"
        )
    runs.resume(project.graph, uid, jobs=wanted.jobs if wanted else None)
    service.work_available.set()
    return run_requests.run_document(project, uid)


@router.get("/runs/{id}/tasks", response_model=run_schemas.Tasks)
def list_tasks(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    return {"tasks": run_requests.run_document(project, id)["tasks"]}


@router.get("/runs/{id}/artifacts", response_model=run_schemas.Artifacts)
def list_artifacts(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    """What the tasks made. The bytes of one that is a single file are those of its `version`."""
    return {
        "artifacts": [
            {
                "id": f"{task['id']}:{name}",
                "task": task["id"],
                **{key: one.get(key) for key in ("uri", "type", "digest", "size", "version")},
                "name": name,
                "metadata": one.get("metadata") or {},
            }
            for task in run_requests.run_document(project, id)["tasks"]
            for name, found in task["artifacts"].items()
            for one in found
        ]
    }


@router.get("/runs/{id}/metrics", response_model=run_schemas.Metrics)
def get_metrics(project: ProjectDep, id: Id) -> Any:  # noqa: A002
    """The numbers that the tasks gave."""
    found = run_requests.run_document(project, id)
    lines = [
        {"task": task["id"], "state": task["state"], "values": values}
        for task in found["tasks"]
        if (values := _numbers(task))
    ]
    return {"run": found["id"] or found["uid"], "metrics": lines}


@router.get("/tasks/{run}/{task:path}/why", response_model=run_schemas.Why)
def get_why(project: ProjectDep, run: Id, task: TaskName) -> Any:
    """Why it ran, or did not have to, fact by fact."""
    return project.pipelines.why(full_task_id(project, run, task))


@router.get("/tasks/{run}/{task:path}", response_model=run_schemas.Task)
def get_task(project: ProjectDep, run: Id, task: TaskName) -> Any:
    return project.pipelines.task(full_task_id(project, run, task))


def full_task_id(project: ProjectDep, run: str, task: str) -> str:
    """What a task is called anywhere: r1/train, also where the run is named by its uid."""
    found = run_requests.run_document(project, run, tasks=False)
    if found["id"] is None:
        raise NotFound(f"the run {run} has not begun", hint="ask again when it runs")
    return f"{found['id']}/{task}"


def _numbers(task: dict[str, Any]) -> dict[str, float]:
    found = {name: value for name, value in task["outputs"].items() if _is_number(value)}
    for name, made in task["artifacts"].items():
        for one in made:
            if one["type"].startswith(_METRICS):
                found |= {
                    f"{name}.{key}": value
                    for key, value in (one.get("metadata") or {}).items()
                    if _is_number(value)
                }
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

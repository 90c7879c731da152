"""The tasks of a run in Kubeflow's format, from the record of the run.

Loops, conditions and nested pipelines are not tasks in the record, only parts of the names of the
tasks within them (`for-loop-2/0/train`). Kubeflow shows such groups as tasks, so they are derived
here from the tasks within them.
"""

from datetime import datetime
from typing import Any

from msgspec import to_builtins

from clew.documents.ids import Uid
from clew.documents.pipelines.runs import RunWithTasks, Task
from clew.server.kfp.responses import grpc_status, without_empty

_STATES = {
    "pending": "PENDING",
    "running": "RUNNING",
    "succeeded": "SUCCEEDED",
    "reused": "SUCCEEDED",
    "failed": "FAILED",
    "skipped": "SKIPPED",
    "canceled": "CANCELED",
}
_WORST_FIRST = ("FAILED", "CANCELED", "SUCCEEDED", "SKIPPED")


def task_details(run: Uid, recorded: RunWithTasks) -> list[dict[str, Any]]:
    """The tasks and groups, each group before its members."""
    tasks = {task.name: task for task in recorded.tasks}
    members: dict[str, list[Task]] = {}
    for name, task in tasks.items():
        for group in _groups_of(name):
            members.setdefault(group, []).append(task)
    finished = recorded.state != "running"
    details: dict[str, dict[str, Any]] = {}
    for name, task in tasks.items():
        for group in _groups_of(name):
            if group not in tasks and group not in details:
                details[group] = _group(members[group], finished=finished)
        details[name] = _task(task)
    for name, detail in details.items():
        detail |= {"run_id": run, "task_id": f"{recorded.id}/{name}"}
        detail["display_name"] = name.rpartition("/")[2]
        if parent := details.get(name.rpartition("/")[0]):
            detail["parent_task_id"] = parent["task_id"]
            parent.setdefault("child_tasks", []).append({"task_id": detail["task_id"]})
    return list(details.values())


def _groups_of(name: str) -> list[str]:
    """The groups that a task is in, the outermost first."""
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _task(task: Task) -> dict[str, Any]:
    state = _STATES[task.state]
    began, ended = _format(task.started), _format(task.ended)
    history = [without_empty(state="RUNNING", update_time=began)] if began else []
    return without_empty(
        **_times(began, ended),
        state=state,
        execution_id=task.execution,
        pod_name=task.pod,
        error=grpc_status(task.error),
        outputs={name: {"artifact_ids": _artifact_ids(task, name)} for name in task.artifacts},
        state_history=[*history, without_empty(state=state, update_time=ended)]
        if ended
        else history,
    )


def _group(members: list[Task], *, finished: bool) -> dict[str, Any]:
    """A group counts as running until its run ends: only then are all its members known."""
    states = {_STATES[task.state] for task in members}
    began = min((task.started for task in members if task.started), default=None)
    ended = max((task.ended for task in members if task.ended), default=None)
    if not finished:
        return without_empty(
            **_times(_format(began), None), state="RUNNING" if began else "PENDING"
        )
    state = next((name for name in _WORST_FIRST if name in states), "FAILED")
    return without_empty(**_times(_format(began), _format(ended)), state=state)


def _times(began: str | None, ended: str | None) -> dict[str, str | None]:
    return {"create_time": began, "start_time": began, "end_time": ended}


def _artifact_ids(task: Task, name: str) -> list[str]:
    """`r1/train:model`; with a number if there are several."""
    count = len(task.artifacts[name])
    artifact = f"{task.id}:{name}"
    return [artifact] if count == 1 else [f"{artifact}/{number}" for number in range(count)]


def _format(at: datetime | None) -> str | None:
    return None if at is None else str(to_builtins(at))

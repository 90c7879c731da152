"""The tasks of a run, from what was recorded of them.

Loops, conditions and pipelines in pipelines are no tasks of the record, only parts of the names of
those within (`for-loop-2/0/train`); Kubeflow tells of them as of tasks, so each is made up here
from what is inside.
"""

from __future__ import annotations

from typing import Any

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


def task_details(run: str, recorded: dict[str, Any]) -> list[dict[str, Any]]:
    """Each task, and each group of tasks before what is within it."""
    tasks = {task["name"]: task for task in recorded["tasks"]}
    inside: dict[str, list[dict[str, Any]]] = {}
    for name, task in tasks.items():
        for group in _around(name):
            inside.setdefault(group, []).append(task)
    over = recorded["state"] != "running"
    found: dict[str, dict[str, Any]] = {}
    for name, task in tasks.items():
        for group in _around(name):
            if group not in tasks and group not in found:
                found[group] = _group(inside[group], over=over)
        found[name] = _task(task)
    for name, one in found.items():
        one |= {"run_id": run, "task_id": f"{recorded['id']}/{name}"}
        one["display_name"] = name.rpartition("/")[2]
        if parent := found.get(name.rpartition("/")[0]):
            one["parent_task_id"] = parent["task_id"]
            parent.setdefault("child_tasks", []).append({"task_id": one["task_id"]})
    return list(found.values())


def _around(name: str) -> list[str]:
    """The groups that a task is in, the outermost first."""
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _task(task: dict[str, Any]) -> dict[str, Any]:
    state, began, ended = _STATES[task["state"]], task["started"], task["ended"]
    history = [without_empty(state="RUNNING", update_time=began)] if began else []
    return without_empty(
        **_times(began, ended),
        state=state,
        execution_id=task["execution"],
        error=grpc_status(task["error"]),
        outputs={name: {"artifact_ids": _ids(task, name)} for name in task["artifacts"]},
        state_history=[*history, without_empty(state=state, update_time=ended)]
        if ended
        else history,
    )


def _group(inside: list[dict[str, Any]], *, over: bool) -> dict[str, Any]:
    """It is over with its run at the latest: what more will be in it is not known before."""
    states = {_STATES[task["state"]] for task in inside}
    began = min((task["started"] for task in inside if task["started"]), default=None)
    ended = max((task["ended"] for task in inside if task["ended"]), default=None)
    if not over:
        return without_empty(**_times(began, None), state="RUNNING" if began else "PENDING")
    state = next((one for one in _WORST_FIRST if one in states), "FAILED")
    return without_empty(**_times(began, ended), state=state)


def _times(began: str | None, ended: str | None) -> dict[str, str | None]:
    return {"create_time": began, "start_time": began, "end_time": ended}


def _ids(task: dict[str, Any], name: str) -> list[str]:
    """`r1/train:model`; one of many has its number."""
    several = len(task["artifacts"][name])
    one = f"{task['id']}:{name}"
    return [one] if several == 1 else [f"{one}/{number}" for number in range(several)]

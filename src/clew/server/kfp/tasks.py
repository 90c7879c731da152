"""The tasks of a run, from what was recorded of them."""

from __future__ import annotations

from typing import Any

from clew.server.kfp.answers import failure, shown

_STATES = {
    "pending": "PENDING",
    "running": "RUNNING",
    "succeeded": "SUCCEEDED",
    "reused": "SUCCEEDED",
    "failed": "FAILED",
    "skipped": "SKIPPED",
    "canceled": "CANCELED",
}


def details(run: str, recorded: dict[str, Any]) -> list[dict[str, Any]]:
    """Each task, with whatever it is within: loops, conditions, pipelines in pipelines."""
    found = {task["name"]: task for task in recorded["tasks"]}
    parents = {name: _parent(name, found) for name in found}
    children: dict[str, list[dict[str, str]]] = {}
    for name, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append({"task_id": found[name]["id"]})
    return [
        _shown(run, task, found.get(parents[name] or ""), children.get(name, []))
        for name, task in found.items()
    ]


def _parent(name: str, known: dict[str, Any]) -> str | None:
    while "/" in name:
        name = name.rpartition("/")[0]
        if name in known:
            return name
    return None


def _shown(
    run: str, task: dict[str, Any], parent: dict[str, Any] | None, children: list[dict[str, str]]
) -> dict[str, Any]:
    state = _STATES[task["state"]]
    began, ended = task["started"], task["ended"]
    history = [("RUNNING", began)] if began else [("PENDING", None)]
    if ended:
        history.append((state, ended))
    return shown(
        run_id=run,
        task_id=task["id"],
        display_name=task["name"],
        create_time=began,
        start_time=began,
        end_time=ended,
        state=state,
        execution_id=task["execution"],
        error=failure(task["error"]),
        outputs={name: {"artifact_ids": _ids(task, name)} for name in task["artifacts"]},
        parent_task_id=parent["id"] if parent else None,
        child_tasks=children,
        state_history=[shown(state=one, update_time=at) for one, at in history],
    )


def _ids(task: dict[str, Any], name: str) -> list[str]:
    """`r1/train:model`; one of many has its number."""
    several = len(task["artifacts"][name])
    one = f"{task['id']}:{name}"
    return [one] if several == 1 else [f"{one}/{number}" for number in range(several)]

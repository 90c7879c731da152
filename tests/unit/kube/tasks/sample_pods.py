"""The Pod of a task, as it is wanted and as Kubernetes describes it."""

from typing import Any

from msgspec.structs import replace

from clew.kube.objects import Json
from clew.kube.tasks.manifest import build_manifest
from clew.kube.tasks.task_pod import Helper, TaskPod, pod_name

IMAGE_ID = "docker.io/library/python@sha256:" + "1" * 64
TASK = TaskPod(
    name=pod_name("run-1", "train", 1),
    namespace="me",
    run="run-1",
    task="train",
    helper=Helper(image="clew:1", command=("clew-helper",), secret="clew-artifacts"),
    image="python:3.12",
    command=("python3", "-c", "pass"),
)


def task(**settings: Any) -> TaskPod:
    return replace(TASK, **settings)


def container(name: str, **state: Any) -> Json:
    """The status of a container: `running`, `waiting` or `terminated`."""
    return {"name": name, "image": f"{name}:1", "imageID": IMAGE_ID, "state": state}


def ended(status: int, reason: str | None = None, message: str = "") -> Json:
    return {
        "exitCode": status,
        "reason": reason or ("Error" if status else "Completed"),
        "message": message,
        "startedAt": "2026-03-01T12:00:00Z",
        "finishedAt": "2026-03-01T12:00:05Z",
    }


def pod(
    phase: str,
    *containers: Json,
    deleted: str | None = None,
    conditions: tuple[Json, ...] = (),
    **status: Any,
) -> Json:
    """The Pod of `TASK` on node1. `deleted`: the time by which it should be gone."""
    made = build_manifest(task(limits={"memory": "64Mi"}))
    made["spec"]["nodeName"] = "node1"
    made["metadata"] |= {"uid": "uid-1", "resourceVersion": "1"}
    if deleted:
        made["metadata"]["deletionTimestamp"] = deleted
    made["status"] = {
        "phase": phase,
        "containerStatuses": list(containers),
        "conditions": list(conditions),
        **status,
    }
    return made

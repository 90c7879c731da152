"""A Pod with the sidecar, as the API server shows it."""

from typing import Any

from clew.agents.sidecars.traffic_sidecar_names import (
    CONTAINER,
    STORES,
)
from clew.documents.ids import Uid

UID = "0a1b2c3d-0000-4000-8000-000000000001"


POD = Uid(UID.replace("-", ""))


def container(name: str, letter: str, **state: Any) -> dict[str, Any]:
    running = {"running": {"startedAt": "2026-11-19T04:00:00Z"}}
    identity = f"containerd://{letter * 64}"
    return {"name": name, "containerID": identity, "restartCount": 0, "state": state or running}


def pod(**status: Any) -> dict[str, Any]:
    known = {
        "startTime": "2026-11-19T03:59:59Z",
        "initContainerStatuses": [container(CONTAINER, "5")],
        "containerStatuses": [container("main", "c")],
    }
    return {
        "metadata": {
            "name": "train", "namespace": "team", "uid": UID,
            "annotations": {STORES: "s3.example"}, "creationTimestamp": "2026-11-19T03:59:58Z",
        },
        "spec": {
            "nodeName": "one",
            "initContainers": [{"name": CONTAINER, "image": "sidecar"}],
            "containers": [{"name": "main", "image": "app:1"}],
        },
        "status": {**known, **status},
    }  # fmt: skip

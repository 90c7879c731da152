"""Requests as kube-scheduler makes them, and nodes as watches report them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.kube.scheduler.wire_format import Metadata, Node, Owner, Pod, PodSpec


def ignore(measured_ms: float, predicted_ms: float) -> None:
    """What a test does not look at."""


LABELS = {"typeOfComponent": "Predict", "OurLocation": "HOME"}


def make_node(name: str, **labels: object) -> Node:
    return Node(Metadata(name=name, labels={key: str(value) for key, value in labels.items()}))


def make_pod(uid: str, node: str | None = None, owner: str = "") -> Pod:
    """A Pod as a watch reports it."""
    owners = [Owner(owner, controller=True)] if owner else None
    metadata = Metadata(name=uid, namespace="default", uid=uid, labels=LABELS, owners=owners)
    return Pod(metadata, PodSpec(node))


def make_request(
    nodes: Sequence[str],
    *,
    uid: str = "u1",
    labels: Mapping[str, str] = LABELS,
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
) -> bytes:
    metadata: dict[str, Any] = {
        "name": uid,
        "namespace": "default",
        "uid": uid,
        "labels": dict(labels),
        "annotations": dict(annotations or {}),
    }
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    pod = {"metadata": metadata, "spec": {}}
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}).encode()


def refresh(state: SchedulingState) -> bool:
    """Let everything that was reported count; whether anything was new."""
    news = state.refresh(0.0)
    while state.renew():
        pass
    return news

"""Resources and what surrounds them, as Kubernetes writes them."""

from datetime import UTC, datetime
from typing import Any

from clew.kube.controller.model import Child, ClusterState, Event, child_of
from clew.kube.objects import Json

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def notebook(name: str = "first", **metadata: Any) -> Json:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": {"name": name, "namespace": "me", "uid": f"uid-{name}", **metadata},
        "spec": {"template": {"spec": {"containers": [{"name": name, "image": "jupyter:1"}]}}},
    }


def tensorboard(logspath: str, name: str = "curves", **metadata: Any) -> Json:
    return {
        "apiVersion": "tensorboard.kubeflow.org/v1alpha1",
        "kind": "Tensorboard",
        "metadata": {
            "name": name,
            "namespace": "me",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-03-01T11:00:00Z",
            **metadata,
        },
        "spec": {"logspath": logspath},
    }


def viewer(pvc: str = "data", name: str = "files", **spec: Any) -> Json:
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "PVCViewer",
        "metadata": {
            "name": name,
            "namespace": "me",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-03-01T11:30:00Z",
        },
        "spec": {"pvc": pvc, **spec},
    }


def pod(name: str, node: str | None = "a", claim: str | None = None, **more: Any) -> Json:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {
        "metadata": {
            "name": name,
            "namespace": "me",
            "uid": f"pod-{name}",
            "creationTimestamp": "2026-03-01T11:59:00Z",
            **more.pop("metadata", {}),
        },
        "spec": {"volumes": volumes, **({"nodeName": node} if node else {})},
        "status": {"phase": "Running", **more},
    }


def claim(name: str, *modes: str) -> dict[str, Json]:
    return {name: {"metadata": {"name": name}, "spec": {"accessModes": list(modes)}}}


def as_child(manifest: Json, **status: Any) -> Child:
    """A manifest after Kubernetes has taken it."""
    uid = f"{manifest['kind']}-{manifest['metadata']['name']}"
    return child_of(
        {**manifest, "metadata": {**manifest["metadata"], "uid": uid}, "status": status}
    )


def cluster_state(*children: Child, **more: Any) -> ClusterState:
    return ClusterState(NOW, {(c.kind, c.name): c for c in children}, **more)


def event(reason: str, message: str, kind: str = "StatefulSet", uid: str = "x") -> Event:
    name = f"{kind}.{reason}"
    return Event(
        f"uid-{name}", name, kind, "first", uid, True, reason, message, 1, NOW, NOW, "kubelet"
    )


def of_kind(children: tuple[Json, ...], kind: str) -> Json:
    [found] = [child for child in children if child["kind"] == kind]
    return found

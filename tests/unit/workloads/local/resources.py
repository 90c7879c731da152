"""Resources as the web app sends them."""

from typing import Any

from clew.kube.objects import Json, Key

NAMESPACE = "local"


def resource(kind: str, version: str, name: str, spec: Json, **metadata: Any) -> Json:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": spec,
    }


def notebook(
    name: str = "first",
    *,
    claim: str = "data",
    mount: str = "/home/jovyan",
    variables: dict[str, str] | None = None,
    inner: str = "",
) -> Json:
    container = {
        "name": name,
        "image": "local",
        "env": [{"name": key, "value": value} for key, value in (variables or {}).items()],
        "volumeMounts": [{"name": claim, "mountPath": mount, "subPath": inner}],
    }
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}}]
    pod = {"containers": [container], "volumes": volumes}
    return resource("Notebook", "kubeflow.org/v1", name, {"template": {"spec": pod}})


def viewer(name: str = "files", *, claim: str = "data") -> Json:
    return resource("PVCViewer", "kubeflow.org/v1alpha1", name, {"pvc": claim})


def tensorboard(name: str = "board", *, logs: str = "pvc://data/logs") -> Json:
    return resource("Tensorboard", "tensorboard.kubeflow.org/v1alpha1", name, {"logspath": logs})


def volume(name: str = "data", **metadata: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return resource("PersistentVolumeClaim", "v1", name, spec, **metadata)


def key(made: Json) -> Key:
    return Key(made["kind"], NAMESPACE, made["metadata"]["name"])

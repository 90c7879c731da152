"""Viewers on a real cluster: ready by their claim alone, and on the node that has the volume."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.jupyter import server  # noqa: F401 - a fixture
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.operator import (  # noqa: F401 - operator is a fixture
    BUSYBOX,
    CLEW,
    SERVER,
    Operator,
    assert_unmodified,
    claim,
    notebook,
    operator,
    wait_for_reason,
)
from tests.cluster.test_tensorboards import tensorboard
from tests.local.server import Server
from tests.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def viewer(pvc: str, name: str = "files", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "PVCViewer",
        "metadata": {"name": name},
        "spec": {"pvc": pvc, **spec},
    }


def test_its_claim_is_enough(
    kube: Kube,
    server: Server,  # noqa: F811
) -> None:
    kube.apply(claim("data"), viewer("data"))
    kube.wait_for("pvcviewer/files", "condition=Ready")
    assert_unmodified(kube, "pvcviewer/files")
    status = kube.get("pvcviewer", "files")["status"]
    assert status["ready"] is True
    assert status["url"] == f"/pvcviewer/{kube.namespace}/files/"
    with server.apps_client() as user:
        wait_until("it is shown", lambda: "<html" in user.get(status["url"]).text.lower())


def test_a_quota_on_requests_and_limits_admits_it_and_a_tensorboard(kube: Kube) -> None:
    hard = "requests.cpu=1,limits.cpu=2,requests.memory=1Gi,limits.memory=4Gi"
    kube("create", "quota", "small", f"--hard={hard}")
    kube.apply(claim("data"), viewer("data"), tensorboard("pvc://data"))
    kube.wait_for("pvcviewer/files", "condition=Ready")
    kube.wait_for("tensorboard/curves", "condition=Ready")
    assert_unmodified(kube, "tensorboard/curves")


def test_a_pod_without_the_claim_is_refused(kube: Kube) -> None:
    own = {"containers": [{"name": "a", "image": CLEW}]}
    with pytest.raises(AssertionError, match="volume of the claim"):
        kube.apply(viewer("data", podSpec=own))


@pytest.fixture
def loose(kube: Kube) -> Iterator[str]:
    """A claim that one node alone may hold, whose volume any node could reach."""
    require_local_cluster(kube)
    name = f"loose-{uuid.uuid4().hex[:8]}"
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Mi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "claimRef": {"namespace": kube.namespace, "name": "loose"},
            "hostPath": {"path": f"/tmp/{name}", "type": "DirectoryOrCreate"},
        },
    }
    kube.apply(volume, claim("loose", storageClassName="", volumeName=name))
    yield "loose"
    kube("delete", "persistentvolume", name, "--wait=false")
    for file in (made := Path(f"/tmp/{name}")).glob("*"):
        file.unlink()
    if made.exists():
        made.rmdir()


def node_of(kube: Kube, label: str) -> str:
    pods = kube.get("pods", "--selector", label)["items"]
    alive = [p for p in pods if "deletionTimestamp" not in p["metadata"]]
    return str(alive[0]["spec"].get("nodeName", "")) if len(alive) == 1 else ""


def browser(pvc: str) -> dict[str, Any]:
    """A Pod of one's own, which is small and ends at once."""
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": SERVER,
        "ports": [{"containerPort": 8888}],
        "readinessProbe": {"tcpSocket": {"port": 8888}, "periodSeconds": 1},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": pvc}}],
    }


def test_it_and_a_tensorboard_go_where_the_volume_is_held_and_follow(
    kube: Kube, loose: str, nodes: list[str]
) -> None:
    label = "app.kubernetes.io/name=files"
    for node in (nodes[0], nodes[1]):
        chosen = {"nodeSelector": {"kubernetes.io/hostname": node}}
        kube.apply(
            notebook(volume=loose, spec=chosen),
            viewer(loose, podSpec=browser(loose)),
            tensorboard(f"pvc://{loose}"),
        )
        wait_until(
            "the notebook is there", lambda node=node: node_of(kube, "notebook-name=first") == node
        )
        wait_until("the viewer is beside it", lambda node=node: node_of(kube, label) == node)
        kube.wait_for("pvcviewer/files", "condition=Ready")
        wait_until("the TensorBoard as well", lambda node=node: node_of(kube, "app=curves") == node)
    kube("delete", "tensorboard", "curves", "--cascade=foreground")
    kube.wait_for("pod/first-0", "condition=Ready")
    kube("exec", "first-0", "--", "sh", "-c", "echo thread > /data/clew")
    viewer_pod = kube.get("pods", "--selector", label)["items"][0]["metadata"]["name"]
    assert kube("exec", viewer_pod, "--", "cat", "/data/clew") == "thread\n"
    kube("delete", "notebook", "first", "--cascade=foreground")

    def free() -> bool:
        spec = kube.get("deployment", "pvcviewer-files")["spec"]["template"]["spec"]
        return "affinity" not in spec

    wait_until("it is free", free)
    wait_for_reason(kube, "pvcviewer/files", "Running")

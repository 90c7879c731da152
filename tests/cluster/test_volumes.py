"""Claims get volumes by themselves, and volumes outlive the Pods that wrote them."""

from typing import Any

import pytest
from tests.cluster.kube import Kube, pod

pytestmark = pytest.mark.cluster


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Mi"}},
        },
    }


def test_a_claim_is_bound_and_written_and_read_by_another(kube: Kube) -> None:
    kube.apply(claim("kept"))
    kube.run(pod("writes", "sh", "-c", "echo thread > /data/clew", volume="kept"))
    assert kube.get("pvc", "kept")["status"]["phase"] == "Bound"
    kube("delete", "pod", "writes")
    assert kube.run(pod("reads", "cat", "/data/clew", volume="kept")) == "thread\n"


def test_each_node_has_volumes(kube: Kube, nodes: list[str]) -> None:
    for number, node in enumerate(nodes):
        name = f"of-{number}"
        kube.apply(claim(name))
        where = pod(f"writes-{number}", "sh", "-c", "echo > /data/here", on=node, volume=name)
        kube.run(where)


def test_a_volume_goes_with_its_claim(kube: Kube) -> None:
    kube.apply(claim("gone"))
    kube.run(pod("writes", "sh", "-c", "echo thread > /data/clew", volume="gone"))
    volume = kube.get("pvc", "gone")["spec"]["volumeName"]
    kube("delete", "pod", "writes")
    kube("delete", "pvc", "gone")
    kube.wait_for(f"pv/{volume}", "delete")

"""Parts of a cluster fail, and the operator with them, or it is taken away: nothing is lost.

These bring up a cluster of their own, to break it: they need root and this machine, not KUBECONFIG.
"""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.concurrency import OWN_CLUSTER
from tests.cluster.deployment import DEPLOY, NAMESPACE
from tests.cluster.kube import Kube
from tests.cluster.operator import (
    CRDS,
    claim,
    is_registered,
    notebook,
    run_operator,
    wait_for_reason,
)
from tests.cluster.test_cluster_lifecycle import done
from tests.wait import wait_until

pytestmark = [
    pytest.mark.cluster,
    OWN_CLUSTER,
    pytest.mark.skipif(os.geteuid() != 0, reason="bringing up a cluster takes root"),
]

MANY = 30
STOPPED = {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    found = tmp_path_factory.mktemp("broken") / "cluster"
    try:
        done(found, "up", "--bare")
        yield found
    finally:
        done(found, "down")


def made(kube: Kube) -> dict[str, str]:
    """The StatefulSets that are there, by name."""
    found = kube.get("statefulsets")["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


def pod(kube: Kube) -> str:
    return kube("get", "pod", "first-0", "--output=jsonpath={.metadata.uid}")


def test_whatever_fails_nothing_is_lost(folder: Path, tmp_path: Path) -> None:
    kube = Kube(str(folder / "kubeconfig"))
    with run_operator(kube, tmp_path) as operator:
        on = {"nodeSelector": {"kubernetes.io/hostname": "node2"}}
        lost = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
        at_once = {**on, "tolerations": [{**lost, "effect": "NoExecute", "tolerationSeconds": 1}]}
        kube.apply(claim("home"), notebook(volume="home", spec=on), notebook("moved", spec=at_once))
        kube.wait_for("notebook/first", "condition=Ready")
        kube.wait_for("notebook/moved", "condition=Ready")
        kube("exec", "first-0", "--", "sh", "-c", "echo thread > /data/clew")
        before = pod(kube)

        # The API server is killed while many are being made; the operator outlives it.
        kube.apply(*(notebook(f"n{i}", annotations=STOPPED) for i in range(MANY)))
        wait_until("some are made", lambda: len(made(kube)) > 3)
        done(folder, "stop", "kube-apiserver", "--signal", "KILL")
        assert operator.alive()
        done(folder, "start", "kube-apiserver")
        wait_until("it answers", lambda: kube("get", "--raw=/readyz", ok=False) == "ok")
        some = made(kube)
        kube("delete", "notebook", "n0")
        wait_until("all others are made", lambda: len(made(kube)) == MANY + 1)
        after = made(kube)
        assert {name: uid for name, uid in some.items() if name != "n0"}.items() <= after.items()

        # A node is no longer heard of, and the operator killed meanwhile.
        done(folder, "stop", "kubelet-node2", "--signal", "KILL")
        operator.end(signal.SIGKILL)
        kube("annotate", "notebook/n1", "kubeflow-resource-stopped-")
        operator.start()
        wait_for_reason(kube, "notebook/n1", "Running")
        wait_for_reason(kube, "notebook/first", "NodeUnreachable")
        kube.wait_for("pod/moved-0", "jsonpath={.metadata.deletionTimestamp}")
        wait_for_reason(kube, "notebook/moved", "NodeUnreachable")
        done(folder, "start", "kubelet-node2")
        wait_for_reason(kube, "notebook/first", "Running")
        wait_for_reason(kube, "notebook/moved", "Running")
        assert pod(kube) == before, "it ran all the time"
        assert kube("exec", "first-0", "--", "cat", "/data/clew") == "thread\n"
        assert made(kube) == after, "nothing was made twice"


def test_uninstalled_it_leaves_what_users_have(folder: Path, tmp_path: Path) -> None:
    kube = Kube(str(folder / "kubeconfig"), NAMESPACE)
    own = Kube(kube.kubeconfig, "kept")
    kube("create", "namespace", "kept")
    kube("apply", "--kustomize", str(DEPLOY))
    with run_operator(own, tmp_path):
        own.apply(claim("home"), notebook(volume="home"), notebook("brief", annotations=STOPPED))
        own.wait_for("notebook/first", "condition=Ready")
        before = pod(own)
        # Kubernetes learns within half a minute of new kinds whose children it has to delete.
        own("delete", "notebook", "brief")
        wait_until("its child went", lambda: made(own).keys() == {"first"})
    kube("delete", "--kustomize", str(DEPLOY / "programs"))
    assert kube.get("deployment")["items"] == []
    assert [one["metadata"]["name"] for one in kube.get("pvc")["items"]] == ["clew-server"]
    assert pod(own) == before, "it goes on"
    kube("apply", "--kustomize", str(DEPLOY))  # again, and an upgrade is no more than this
    assert pod(own) == before
    volume = own.get("pvc", "home")["spec"]["volumeName"]
    kube("delete", "--kustomize", str(DEPLOY))  # the kinds as well, and with them all there are
    wait_until("the Pod goes", lambda: not own("get", "pod", "first-0", "--ignore-not-found"))
    assert own.get("pvc", "home")["spec"]["volumeName"] == volume
    assert own.get("pv", volume)["status"]["phase"] == "Bound"


def test_started_first_it_waits_for_the_kinds(folder: Path, tmp_path: Path) -> None:
    kube = Kube(str(folder / "kubeconfig"))
    with run_operator(kube, tmp_path) as operator:
        operator.end()
        kube("delete", "--kustomize", str(CRDS))
        started = threading.Thread(target=operator.start)
        started.start()
        wait_until("it waits", lambda: "knows no Notebook yet" in operator.log())
        kube("apply", "--kustomize", str(CRDS))
        started.join()
        wait_until("they are known", lambda: is_registered(kube, "notebooks"))
        kube.apply(notebook("late", annotations=STOPPED))
        wait_for_reason(kube, "notebook/late", "Stopped")

"""Notebooks on a real cluster."""

import json

import pytest
from tests.cluster.kube import Kube
from tests.cluster.operator import (  # noqa: F401 - operator is a fixture
    Operator,
    assert_unmodified,
    claim,
    notebook,
    operator,
    wait_for_reason,
)
from tests.wait import wait_until

STOPPED = "kubeflow-resource-stopped"

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def annotate(kube: Kube, name: str, *words: str) -> None:
    kube("annotate", f"notebook/{name}", *words)


def pod_uid(kube: Kube, name: str) -> str:
    return kube("get", "pod", f"{name}-0", "-o", "jsonpath={.metadata.uid}", ok=False)


def test_a_notebook_runs_and_is_not_modified(kube: Kube) -> None:
    kube.apply(notebook(labels={"team": "a"}))
    kube.wait_for("notebook/first", "condition=Ready")
    prefix = kube("exec", "first-0", "--", "sh", "-c", "echo $NB_PREFIX").strip()
    assert prefix == f"/notebook/{kube.namespace}/first"
    found = wait_until("it is counted", lambda: _counted(kube))
    assert found["status"]["containerState"].keys() == {"running"}
    assert_unmodified(kube, "notebook/first")
    pod = kube.get("pod", "first-0")["metadata"]["labels"]
    assert (pod["team"], pod["notebook-name"], pod["statefulset"]) == ("a", "first", "first")
    [port] = kube.get("service", "first")["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("http-first", 80, 8888)


def _counted(kube: Kube) -> dict[str, object] | None:
    found = kube.get("notebook", "first")
    return found if found["status"]["readyReplicas"] == 1 else None


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_every_version_is_taken(kube: Kube, version: str) -> None:
    kube.apply(notebook(version=version))
    kube.wait_for("notebook/first", "condition=Ready")


def test_stopped_and_started_it_keeps_its_data(
    kube: Kube,
    operator: Operator,  # noqa: F811
) -> None:
    def running() -> float | None:
        """None: the operator says nothing of this namespace."""
        return operator.metrics().get(f'notebook_running{{namespace="{kube.namespace}"}}')

    kube.apply(claim("home"), notebook(volume="home"))
    kube.wait_for("notebook/first", "condition=Ready")
    wait_until("it is counted", lambda: running() == 1)
    kube("exec", "first-0", "--", "sh", "-c", "echo thread > /data/clew")
    annotate(kube, "first", f"{STOPPED}=now")
    wait_for_reason(kube, "notebook/first", "Stopped")
    assert pod_uid(kube, "first") == ""
    wait_until("what is stopped does not count as running", lambda: running() == 0)
    annotate(kube, "first", f"{STOPPED}-")
    kube.wait_for("notebook/first", "condition=Ready")
    wait_until("it is counted again", lambda: running() == 1)
    assert kube("exec", "first-0", "--", "cat", "/data/clew") == "thread\n"
    kube("delete", "notebook", "first", "--cascade=foreground")
    for kind in ("statefulset", "service", "pod"):
        assert kube.get(kind)["items"] == []
    assert kube.get("pvc", "home")["status"]["phase"] == "Bound"
    wait_until("its namespace is not spoken of any more", lambda: running() is None)


def test_restart_makes_the_pod_again(kube: Kube) -> None:
    kube.apply(notebook())
    kube.wait_for("notebook/first", "condition=Ready")
    before = pod_uid(kube, "first")
    annotate(kube, "first", "notebooks.opendatahub.io/notebook-restart=true")
    wait_until("another Pod", lambda: pod_uid(kube, "first") not in ("", before))
    kube.wait_for("notebook/first", "condition=Ready")
    restarted = pod_uid(kube, "first")
    notes = kube.get("notebook", "first")["metadata"]["annotations"]
    assert "notebooks.opendatahub.io/notebook-restart" not in notes
    assert pod_uid(kube, "first") == restarted


def test_an_edit_reaches_the_pod_also_when_it_is_broken(kube: Kube) -> None:
    kube.apply(notebook(container={"image": "docker.io/clew/none:1", "imagePullPolicy": "Never"}))
    found = wait_for_reason(kube, "notebook/first", "ImageNotPulled")
    assert "docker.io/clew/none:1" in found["message"]
    kube.apply(notebook(labels={"later": "true"}))
    kube.wait_for("notebook/first", "condition=Ready")
    assert kube.get("pod", "first-0")["metadata"]["labels"]["later"] == "true"


def test_a_quota_that_blocks_is_named(kube: Kube) -> None:
    kube("create", "quota", "small", "--hard=pods=0")
    kube.apply(notebook())
    found = wait_for_reason(kube, "notebook/first", "QuotaExceeded")
    assert "small" in found["message"]
    kube("delete", "quota", "small")
    kube.wait_for("notebook/first", "condition=Ready")


def test_a_volume_that_is_not_there_is_named(kube: Kube) -> None:
    kube.apply(notebook(volume="nowhere"))
    found = wait_for_reason(kube, "notebook/first", "VolumeMissing")
    assert "nowhere" in found["message"]


@pytest.mark.parametrize("name", ["a.b", "x" * 53])
def test_a_name_that_cannot_work_is_refused(kube: Kube, name: str) -> None:
    with pytest.raises(AssertionError, match="the name must begin with a letter"):
        kube.apply(notebook(name))


def test_a_container_without_an_image_is_refused(kube: Kube) -> None:
    without = notebook()
    del without["spec"]["template"]["spec"]["containers"][0]["image"]
    with pytest.raises(AssertionError, match="image"):
        kube.apply(without)


def test_a_name_conflict_between_kinds(kube: Kube) -> None:
    kube.apply(notebook(annotations={STOPPED: ""}))
    wait_for_reason(kube, "notebook/first", "Stopped")
    owner = kube.get("service", "first")["metadata"]["ownerReferences"]
    board = {
        "apiVersion": "tensorboard.kubeflow.org/v1alpha1",
        "kind": "Tensorboard",
        "metadata": {"name": "first"},
        "spec": {"logspath": "pvc://logs"},
    }
    kube.apply(board)
    wait_for_reason(kube, "tensorboard/first", "NameInUse")
    assert kube.get("service", "first")["metadata"]["ownerReferences"] == owner
    assert kube.get("deployment")["items"] == []
    kube("delete", "notebook", "first", "--cascade=foreground")
    wait_until("the Tensorboard goes on", lambda: kube.get("deployment")["items"])
    [service] = kube.get("service")["items"]
    assert service["metadata"]["ownerReferences"][0]["kind"] == "Tensorboard"


def test_changes_of_children_are_reverted(kube: Kube) -> None:
    kube.apply(notebook(annotations={STOPPED: ""}))
    wait_for_reason(kube, "notebook/first", "Stopped")
    kube("scale", "statefulset/first", "--replicas=1")
    wait_until("it is put back", lambda: kube.get("statefulset", "first")["spec"]["replicas"] == 0)
    patch = [{"op": "replace", "path": "/spec/ports/0/port", "value": 81}]
    kube("patch", "service", "first", "--type=json", f"--patch={json.dumps(patch)}")
    wait_until(
        "the port is put back",
        lambda: kube.get("service", "first")["spec"]["ports"][0]["port"] == 80,
    )
    kube("delete", "service", "first")
    wait_until("it is made again", lambda: kube("get", "service", "first", "-o", "name", ok=False))
    wait_for_reason(kube, "notebook/first", "Stopped")


def test_errors_of_kubernetes_are_reported(
    kube: Kube,
    operator: Operator,  # noqa: F811
) -> None:
    """The schema of a Notebook lets it pass; a StatefulSet's rules do not."""
    space = f'{{namespace="{kube.namespace}"}}'
    made, failed = f"notebook_create_total{space}", f"notebook_create_failed_total{space}"
    errors = 'clew_reconcile_errors_total{kind="Notebook"}'
    before = operator.metrics().get(errors, 0)
    without = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    kube.apply(notebook(container=without))
    found = wait_for_reason(kube, "notebook/first", "InvalidSpec")
    assert "volumeMounts" in found["message"]
    wait_until("it is counted", lambda: operator.metrics().get(errors, 0) > before)
    assert operator.metrics()[failed] >= 1
    assert made not in operator.metrics()
    kube.apply(notebook())
    kube.wait_for("notebook/first", "condition=Ready")
    assert operator.metrics()[made] == 1


def test_a_volume_in_use_is_named(kube: Kube) -> None:
    """One Pod alone may have it, and another does."""
    kube.apply(claim("home", accessModes=["ReadWriteOncePod"]))
    kube.apply(notebook("first", volume="home"))
    kube.wait_for("notebook/first", "condition=Ready")
    kube.apply(notebook("second", volume="home"))
    wait_for_reason(kube, "notebook/second", "VolumeInUse")
    kube("annotate", "notebook/first", f"{STOPPED}=now")
    kube.wait_for("notebook/second", "condition=Ready")


def test_a_volume_elsewhere_is_named(kube: Kube, nodes: list[str]) -> None:
    kube.apply(claim("home"))
    for name, node in zip(("first", "second"), nodes, strict=False):
        on = {"nodeSelector": {"kubernetes.io/hostname": node}}
        kube.apply(notebook(name, volume="home", spec=on))
        if name == "first":
            kube.wait_for("notebook/first", "condition=Ready")
    wait_for_reason(kube, "notebook/second", "VolumeElsewhere")

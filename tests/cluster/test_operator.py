"""The operator itself: killed, crowded, and at rest."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.concurrency import ALL_NAMESPACES
from tests.cluster.deployment import act_as_service_account, render
from tests.cluster.kube import Kube
from tests.cluster.operator import Operator, claim, notebook, run_operator, wait_for_reason
from tests.cluster.training_jobs import FOREVER, pods_of, replicas, services_of, training_job
from tests.wait import wait_until

pytestmark = pytest.mark.cluster

MANY = 200
FAIL_WHEN_TOLD = """
test -e /data/failed && exec sleep 3600
until test -e /data/go; do sleep 0.2; done
touch /data/failed; exit 137
"""
STOPPED = {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}


def versions(kube: Kube) -> dict[str, str]:
    """Of everything there is, which changes with each write."""
    kinds = "notebooks,statefulsets,services,events"
    found = kube.get(kinds)["items"]
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for item in found
    }


def test_many_notebooks_settle_and_then_nothing_is_written(kube: Kube, tmp_path: Path) -> None:
    with run_operator(kube, tmp_path) as operator:
        kube.apply(*(notebook(f"n{i}", annotations=STOPPED) for i in range(MANY)))

        wait_until("all are seen", lambda: _stopped(operator) == MANY)
        wait_until("all are made", lambda: len(kube.get("statefulsets")["items"]) == MANY)
        wait_until("all have a status", lambda: _reasons(kube) == ["Stopped"] * MANY)
        notebooks = kube.get("notebooks")["items"]
        children = kube.get("statefulsets,services")["items"]
        assert len(children) == 2 * MANY
        owners = {
            (item["kind"], item["metadata"]["name"]): item["metadata"]["ownerReferences"][0]["uid"]
            for item in children
        }
        assert owners == {
            (kind, item["metadata"]["name"]): item["metadata"]["uid"]
            for kind in ("StatefulSet", "Service")
            for item in notebooks
        }
        # Kubernetes' own controller writes the status of each StatefulSet, too.
        wait_until(
            "all are observed", lambda: all(map(_observed, kube.get("statefulsets")["items"]))
        )
        before = wait_until("it is at rest", lambda: _same_twice(kube))
        # A restart looks at everything once more; it finds nothing to do.
        operator.end()
        operator.start()
        wait_until("everything was looked at", lambda: _looks(operator.metrics()) >= MANY)
        assert versions(kube) == before


def _stopped(operator: Operator) -> float:
    return operator.metrics().get('clew_resources{kind="Notebook",state="stopped"}', 0.0)


def _reasons(kube: Kube) -> list[str]:
    conditions = (n.get("status", {}).get("conditions") for n in kube.get("notebooks")["items"])
    return [found[0]["reason"] for found in conditions if found]


def _observed(resource: dict[str, Any]) -> bool:
    observed = resource.get("status", {}).get("observedGeneration")
    return bool(observed == resource["metadata"]["generation"])


def _looks(metrics: dict[str, float]) -> float:
    return metrics.get('clew_reconcile_seconds_count{kind="Notebook"}', 0.0)


def _same_twice(kube: Kube) -> dict[str, str] | None:
    first = versions(kube)
    return first if versions(kube) == first else None


def test_a_killed_operator_continues_after_a_restart(kube: Kube, tmp_path: Path) -> None:
    with run_operator(kube, tmp_path) as operator:
        kube.apply(*(notebook(f"n{i}", annotations=STOPPED) for i in range(40)))
        wait_until("some are made", lambda: kube.get("statefulsets")["items"])
        operator.end(signal.SIGKILL)
        made = {
            item["metadata"]["name"]: item["metadata"]["uid"]
            for item in kube.get("statefulsets")["items"]
        }
        kube("annotate", "notebook/n0", "kubeflow-resource-stopped-")
        operator.start()
        wait_until("all are made", lambda: len(kube.get("statefulsets")["items"]) == 40)
        kube.wait_for("notebook/n0", "condition=Ready")
        after = {
            item["metadata"]["name"]: item["metadata"]["uid"]
            for item in kube.get("statefulsets")["items"]
        }
        assert made.items() <= after.items(), "nothing is made twice"


def test_a_killed_operator_goes_on_with_training_jobs(kube: Kube, tmp_path: Path) -> None:
    many = 12
    with run_operator(kube, tmp_path) as operator:
        worker = replicas(FAIL_WHEN_TOLD, restartPolicy="ExitCode", claim="state")
        kube.apply(claim("state"), training_job("again", {"Worker": worker}))
        kube.wait_for("tfjob/again", "condition=Running")
        kube.apply(training_job("wide", {"Worker": replicas(FOREVER, many, pod=_tiny())}))
        wait_until("some are there", lambda: pods_of(kube, "wide"))
        operator.end(signal.SIGKILL)
        first = {name: pod["metadata"]["uid"] for name, pod in pods_of(kube, "wide").items()}
        kube("exec", "again-worker-0", "--", "touch", "/data/go")
        kube.wait_for("pod/again-worker-0", "jsonpath={.status.phase}=Failed")  # it is away
        failed = kube.get("pod/again-worker-0")["metadata"]["uid"]
        operator.start()
        wait_until("all are there", lambda: len(pods_of(kube, "wide")) == many)
        after = {name: pod["metadata"]["uid"] for name, pod in pods_of(kube, "wide").items()}
        assert first.items() <= after.items()
        assert sorted(after) == services_of(kube, "wide")
        wait_until("it starts again", lambda: _uid(kube, "again-worker-0") not in ("", failed))
        status = kube.get("tfjob/again")["status"]
        assert status["restarts"] == [{"replica": "worker 0", "count": 1, "pod": failed}]


def _tiny() -> dict[str, Any]:
    """Pods that find no node: only their creation counts."""
    return {"nodeSelector": {"clew.dev/no-such-node": "true"}}


def _uid(kube: Kube, pod: str) -> str:
    return kube("get", "pod", pod, "--ignore-not-found", "--output=jsonpath={.metadata.uid}")


def test_an_edit_reaches_a_broken_pod_of_another_operator_s(kube: Kube, tmp_path: Path) -> None:
    """Upstream's StatefulSets wait for a Pod to be ready before they make an edited one, and how
    they are managed cannot be changed."""
    broken = notebook(container={"image": "docker.io/clew/none:1", "imagePullPolicy": "Never"})
    with run_operator(kube, tmp_path) as operator:
        operator.end()
        kube.apply(broken)
        labels = {"statefulset": "first"}
        owner = {k: broken[k] for k in ("apiVersion", "kind")} | {"name": "first"}
        owner |= {"uid": kube.get("notebook", "first")["metadata"]["uid"], "controller": True}
        kube.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": "first", "ownerReferences": [owner]},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": broken["spec"]["template"]["spec"],
                    },
                },
            }
        )
        made = kube.get("statefulset", "first")
        assert made["spec"]["podManagementPolicy"] == "OrderedReady"
        operator.start()
        wait_for_reason(kube, "notebook/first", "ImageNotPulled")
        kube.apply(notebook())
        kube.wait_for("notebook/first", "condition=Ready")
        assert kube.get("statefulset", "first")["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize("everywhere", [pytest.param(True, marks=ALL_NAMESPACES), False])
def test_what_it_may_do_is_enough(kube: Kube, tmp_path: Path, everywhere: bool) -> None:
    """With nothing but the rights that deploy/ gives its service account, in all namespaces or
    in the one that it is told."""
    found = render(kube, "operator")
    with (
        act_as_service_account(
            kube, found, "clew-operator", tmp_path, everywhere=everywhere
        ) as own,
        run_operator(kube, tmp_path) as first,
    ):
        kube.apply(notebook())
        first.end()
        first.kube = own
        if everywhere:
            first.namespaces = ()
        first.start()
        brief = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 0}
        kube.apply(training_job("brief", {"Worker": replicas("exit 0")}, **brief))
        kube.wait_for("notebook/first", "condition=Ready")
        kube("annotate", "notebook/first", "notebooks.opendatahub.io/notebook-restart=true")
        wait_until(
            "the annotation is taken away",
            lambda: (
                "notebooks.opendatahub.io/notebook-restart"
                not in kube.get("notebook", "first")["metadata"]["annotations"]
            ),
        )
        kube.apply(notebook(labels={"later": "true"}))
        wait_until(
            "the edit arrives",
            lambda: kube.get("statefulset", "first")["spec"]["template"]["metadata"]["labels"].get(
                "later"
            ),
        )
        wait_for_reason(kube, "notebook/first", "Running")
        wait_until("its time is over", lambda: not kube("get", "tfjobs", "--output=name"))
        refused = re.compile("forbidden|permission", re.IGNORECASE).search
        lines = [line for line in first.log().splitlines() if refused(line)]
        assert [line for line in lines if "is being terminated" not in line] == []


@pytest.mark.parametrize("told", ["{}", "{}*"])
def test_the_operator_handles_namespaces_that_are_created_later(
    kube: Kube, tmp_path: Path, told: str
) -> None:
    later = Kube(kube.kubeconfig, f"{kube.namespace}-later")
    with run_operator(Kube(kube.kubeconfig, told.format(later.namespace)), tmp_path) as operator:
        kube.apply(notebook(annotations=STOPPED))
        kube("create", "namespace", later.namespace)
        try:
            later.apply(notebook(annotations=STOPPED))
            wait_for_reason(later, "notebook/first", "Stopped")
            wait_until("it is counted", lambda: _stopped(operator) == 1)
            assert kube.get("statefulsets")["items"] == []
        finally:
            kube("delete", "namespace", later.namespace, "--wait=false")

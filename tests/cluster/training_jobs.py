"""Training jobs of small Pods, and what becomes of them."""

import json
from typing import Any

from tests.cluster.kube import Kube
from tools.cluster.images import BUSYBOX

FIELDS = {
    "TFJob": ("tfReplicaSpecs", "tensorflow"),
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch"),
}
FOREVER = "exec sleep 3600"


def replicas(command: str, count: int = 1, kind: str = "TFJob", **more: Any) -> dict[str, Any]:
    """`claim` is a volume that each has at /data."""
    claim = more.pop("claim", None)
    container: dict[str, Any] = {
        "name": FIELDS[kind][1],
        "image": BUSYBOX,
        "command": ["sh", "-c", command],
    }
    pod: dict[str, Any] = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    if claim:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        pod["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    pod |= more.pop("pod", {})
    return {"replicas": count, "template": {"spec": pod}, **more}


def training_job(
    name: str, types: dict[str, Any], kind: str = "TFJob", **policy: Any
) -> dict[str, Any]:
    """`policy` is its runPolicy."""
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {FIELDS[kind][0]: types, **({"runPolicy": policy} if policy else {})},
    }


def wait_for_condition(kube: Kube, what: str, condition: str) -> dict[str, Any]:
    """Wait until a job has a condition; the job."""
    found: dict[str, Any] = json.loads(
        kube.wait_for(what, f"condition={condition}", "--output=json")
    )
    return found


def pods_of(kube: Kube, job: str) -> dict[str, dict[str, Any]]:
    """By name, without those that are being deleted."""
    found = kube.get("pods", "--selector", f"training.kubeflow.org/job-name={job}")["items"]
    return {
        each["metadata"]["name"]: each
        for each in found
        if "deletionTimestamp" not in each["metadata"]
    }


def services_of(kube: Kube, job: str) -> list[str]:
    found = kube.get("services", "--selector", f"training.kubeflow.org/job-name={job}")["items"]
    return sorted(each["metadata"]["name"] for each in found)


def reasons(kube: Kube, job: dict[str, Any]) -> list[str]:
    """Of the events about a job."""
    about = f"involvedObject.uid={job['metadata']['uid']}"
    found = kube.get("events", "--field-selector", about)["items"]
    return [each["reason"] for each in found]


def ready(job: dict[str, Any]) -> dict[str, str]:
    conditions = job["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "Ready")

"""Training jobs: how fast the operator creates Pods and enforces limits.

    python bench/training_jobs.py [--repeat N] [--replicas N] [--json FILE]

It takes the cluster that KUBECONFIG names, else that of `make cluster`, and runs `clew operator` on
this machine for a namespace of its own. All times are taken from one watch of this program:

- from the request that creates a TFJob of 32 workers to the moment at which its last Pod is there,
  N times, in turn with a Job of Kubernetes with a parallelism of 32. The Pods find no node: what is
  measured is the controllers, not the starting of containers;
- for jobs with an activeDeadlineSeconds of 3, how long after these three seconds they have failed;
- for jobs with a backoffLimit of 0 whose worker fails, how long after its Pod they have failed.

Each is printed beside what it must not exceed.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightkube
from lightkube.core.resource import ApiInfo, ResourceDef
from lightkube.generic_resource import GenericNamespacedResource
from lightkube.types import CascadeType

SOURCE = Path(__file__).parents[1]
sys.path.insert(0, str(SOURCE))

from bench.operator_load import NOWHERE, a_cluster  # noqa: E402
from tests.cluster.kube import Kube  # noqa: E402
from tests.cluster.operator import run_operator  # noqa: E402
from tests.cluster.training_jobs import FOREVER, replicas, training_job  # noqa: E402

P95 = 1.0
DEADLINE = 3
VERBS = ["list", "watch", "post", "delete"]


def _kind(group: str, kind: str, plural: str) -> Any:
    info = ApiInfo(resource=ResourceDef(group, "v1", kind), plural=plural, verbs=VERBS)
    return type(kind, (GenericNamespacedResource,), {"_api_info": info})


POD = _kind("", "Pod", "pods")
TFJOB = _kind("kubeflow.org", "TFJob", "tfjobs")
JOB = _kind("batch", "Job", "jobs")


class Seen:
    """What the watches reported, and when."""

    def __init__(self, api: lightkube.AsyncClient) -> None:
        self._api = api
        self._news = asyncio.Condition()
        self.pods: dict[str, dict[str, float]] = {}
        """By job: when each Pod was there."""
        self.failed_pods: dict[str, float] = {}
        """By job: when its first Pod had failed."""
        self.failed: dict[str, float] = {}
        """When a TFJob had failed."""

    async def watch_pods(self) -> None:
        async for _, pod in self._api.watch(POD):
            job = pod["metadata"]["ownerReferences"][0]["name"]
            self.pods.setdefault(job, {}).setdefault(pod["metadata"]["name"], time.monotonic())
            if pod.get("status", {}).get("phase") == "Failed":
                self.failed_pods.setdefault(job, time.monotonic())
            await self._tell()

    async def watch_jobs(self) -> None:
        async for _, job in self._api.watch(TFJOB):
            conditions = job.get("status", {}).get("conditions", ())
            if any(c["type"] == "Failed" and c["status"] == "True" for c in conditions):
                self.failed.setdefault(job["metadata"]["name"], time.monotonic())
            await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def until(self, true: Callable[[], bool]) -> None:
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(true), 120)


def plain_job(name: str, count: int) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    pod = {"restartPolicy": "Never", "containers": [container], **NOWHERE}
    spec = {"parallelism": count, "completions": count, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


async def measure_creation(
    api: lightkube.AsyncClient, seen: Seen, given: argparse.Namespace
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"TFJob": [], "Job": []}
    workers = {"Worker": replicas(FOREVER, given.replicas, pod=NOWHERE)}
    for number in range(given.repeat):
        for kind, type_ in (("TFJob", TFJOB), ("Job", JOB)):
            name = f"{kind.lower()}{number}"
            wide = kind == "TFJob"
            made = training_job(name, workers) if wide else plain_job(name, given.replicas)
            began = time.monotonic()
            await api.create(type_(made))
            await seen.until(lambda name=name: len(seen.pods.get(name, ())) == given.replicas)
            found[kind].append(max(seen.pods[name].values()) - began)
            await api.delete(type_, name, cascade=CascadeType.BACKGROUND)
    return found


async def measure_deadline(
    api: lightkube.AsyncClient, seen: Seen, given: argparse.Namespace
) -> list[float]:
    workers = {"Worker": replicas(FOREVER, pod=NOWHERE)}
    names = [f"late{number}" for number in range(given.repeat)]
    began = {}
    for name in names:
        began[name] = time.monotonic()
        await api.create(TFJOB(training_job(name, workers, activeDeadlineSeconds=DEADLINE)))
        await asyncio.sleep(0.05)  # so that they do not fall due in the same moment
    await seen.until(lambda: seen.failed.keys() >= set(names))
    return [seen.failed[name] - began[name] - DEADLINE for name in names]


async def measure_backoff(
    api: lightkube.AsyncClient, seen: Seen, given: argparse.Namespace
) -> list[float]:
    workers = {"Worker": replicas("exit 137", restartPolicy="ExitCode")}
    found = []
    for number in range(given.repeat):
        name = f"endless{number}"
        await api.create(TFJOB(training_job(name, workers, backoffLimit=0)))
        await seen.until(lambda name=name: name in seen.failed)
        found.append(seen.failed[name] - seen.failed_pods[name])
    return found


async def measure(kube: Kube, given: argparse.Namespace) -> dict[str, list[float]]:
    config = lightkube.KubeConfig.from_file(kube.kubeconfig)
    api = lightkube.AsyncClient(config=config, namespace=kube.namespace)
    seen = Seen(api)
    watches = [asyncio.create_task(w) for w in (seen.watch_pods(), seen.watch_jobs())]
    await asyncio.sleep(1)
    found = await measure_creation(api, seen, given)
    found["deadline"] = await measure_deadline(api, seen, given)
    found["backoff"] = await measure_backoff(api, seen, given)
    for watch in watches:
        watch.cancel()
    await asyncio.gather(*watches, return_exceptions=True)
    await api.aclose()
    return found


def p95(times: list[float]) -> float:
    return sorted(times)[min(int(len(times) * 0.95), len(times) - 1)]


def p50(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]


def tell(found: dict[str, list[float]], given: argparse.Namespace) -> None:
    rows = [
        ("TFJob", f"TFJob of {given.replicas}, request to the last Pod"),
        ("deadline", f"failed after an activeDeadlineSeconds of {DEADLINE}"),
        ("backoff", "failed after the Pod that exceeds the backoffLimit"),
    ]
    for key, text in rows:
        verdict = "ok" if p95(found[key]) <= P95 else "MISSED"
        print(f"{text}: p50 {p50(found[key]):.2f} s, p95 {p95(found[key]):.2f} s", end="")
        print(f" (at most {P95:g} s): {verdict}")
    plain = found["Job"]
    print(f"Job of {given.replicas}: p50 {p50(plain):.2f} s, p95 {p95(plain):.2f} s", end="")
    print(f"; the TFJob takes {p50(found['TFJob']) / p50(plain):.2f} of it")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--replicas", type=int, default=32)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with a_cluster() as kubeconfig, tempfile.TemporaryDirectory() as folder:
        kube = Kube(kubeconfig, f"clew-bench-{uuid.uuid4().hex[:8]}")
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        kube("create", "namespace", kube.namespace)
        try:
            with run_operator(kube, Path(folder)):
                found = asyncio.run(measure(kube, given))
        finally:
            kube("delete", "namespace", kube.namespace, "--wait=false")
    tell(found, given)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())

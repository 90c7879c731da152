"""The operator under load: its reaction to many resources, its writes at rest, its memory.

    python bench/operator_load.py [--burst N] [--many N] [--json FILE]

It takes the cluster that KUBECONFIG names, else that of `make cluster`; if that is not there, it is
brought up and taken down again: other figures want the machine for themselves. The operator runs
there as deploy/ has it, for a namespace of its own:

- from the moment at which a Notebook is taken by the API server to that at which its StatefulSet is
  there, both as a watch tells them: of 200 in one `kubectl apply`, the 95th percentile. Their Pods
  find no node: what is measured is the operator, not the starting of containers;
- what the operator writes in the minute after they have settled: its requests to create, update,
  patch or delete, of any kind in any namespace and whatever was answered, as the API server's audit
  log has them. What it wrote before, for the 200, is counted and printed, too. Another cluster than
  ours keeps that log elsewhere: there it is not counted;
- the memory of the operator with 1,000 Notebooks, at its highest, also when it begins anew and
  finds all of them; those beyond the 200 are stopped ones.

Each is printed beside what it must not exceed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lightkube
from lightkube.core.resource import ApiInfo, ResourceDef
from lightkube.generic_resource import GenericNamespacedResource

SOURCE = Path(__file__).parents[1]
sys.path.insert(0, str(SOURCE))

from tests.cluster.deployment import find_resource, install, render  # noqa: E402
from tests.cluster.kube import Kube  # noqa: E402
from tests.cluster.operator import notebook, wait_until  # noqa: E402
from tools.cluster.layout import Cluster  # noqa: E402

P95, WRITES, MEMORY = 2.0, 0, 200.0
STOPPED = {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}
NOWHERE = {"nodeSelector": {"clew.dev/no-such-node": "true"}}
OPERATOR = "system:serviceaccount:clew:clew-operator"
WRITING = {"create", "update", "patch", "delete", "deletecollection"}
MINUTE = 60.0
QUIET = 0.1


def _kind(group: str, version: str, kind: str, plural: str) -> Any:
    info = ApiInfo(
        resource=ResourceDef(group, version, kind),
        plural=plural,
        verbs=["list", "watch"],
    )
    return type(kind, (GenericNamespacedResource,), {"_api_info": info})


NOTEBOOK = _kind("kubeflow.org", "v1", "Notebook", "notebooks")
STATEFULSET = _kind("apps", "v1", "StatefulSet", "statefulsets")


async def burst(kube: Kube, names: list[str], **how: Any) -> list[float]:
    """Seconds from each Notebook to its StatefulSet."""
    config = lightkube.KubeConfig.from_file(kube.kubeconfig)
    api = lightkube.AsyncClient(config=config, namespace=kube.namespace)
    asked: dict[str, float] = {}
    made: dict[str, float] = {}

    async def see(kind: Any, seen: dict[str, float]) -> None:
        async for _, found in api.watch(kind):
            seen.setdefault(found["metadata"]["name"], time.monotonic())
            if seen.keys() >= set(names):
                return

    watches = [asyncio.create_task(see(NOTEBOOK, asked))]
    watches.append(asyncio.create_task(see(STATEFULSET, made)))
    await asyncio.sleep(1)
    await asyncio.to_thread(kube.apply, *(notebook(name, **how) for name in names))
    await asyncio.gather(*watches)
    await api.aclose()
    return sorted(made[name] - asked[name] for name in names)


def versions(kube: Kube) -> dict[str, str]:
    """Of everything in the namespace; each write changes one."""
    kinds = "notebooks,statefulsets,services,pods,events"
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for item in kube.get(kinds)["items"]
    }


def settled(kube: Kube) -> dict[str, str]:
    def same() -> dict[str, str] | None:
        first = versions(kube)
        time.sleep(5)
        return first if versions(kube) == first else None

    found: dict[str, str] = wait_until("it is at rest", same)
    return found


def written(log: Path, since: datetime) -> int:
    """How often the operator wrote."""
    found = 0
    for file in log.parent.glob("audit*.log"):  # a full one is put aside
        with file.open() as lines:
            for line in lines:
                if OPERATOR in line and _writes(json.loads(line), since):
                    found += 1
    return found


def _writes(event: dict[str, Any], since: datetime) -> bool:
    """Whether this is a request of the operator's that writes, and came since then."""
    who, verb = event["user"]["username"], event["verb"]
    came = datetime.fromisoformat(event["requestReceivedTimestamp"])
    return who == OPERATOR and verb in WRITING and came >= since


def status(clew: Kube) -> dict[str, float]:
    """Of the operator's process: memory now and at its highest, in MB, and CPU seconds."""
    said = clew("exec", "deployment/clew-operator", "--", "cat", "/proc/1/status", "/proc/1/stat")
    lines = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    clock = said.splitlines()[-1].rpartition(")")[2].split()
    return {
        "rss": int(lines["VmRSS"].split()[0]) / 1024,
        "peak": int(lines["VmHWM"].split()[0]) / 1024,
        "cpu": (int(clock[11]) + int(clock[12])) / os.sysconf("SC_CLK_TCK"),
    }


def rested(clew: Kube) -> dict[str, float]:
    """The same, once it has looked at everything there is."""

    def quiet() -> dict[str, float] | None:
        before = status(clew)["cpu"]
        time.sleep(5)
        after = status(clew)
        return after if after["cpu"] - before < QUIET else None

    found: dict[str, float] = wait_until("the operator rests", quiet)
    return found


@contextmanager
def operated(kube: Kube) -> Iterator[Kube]:
    found = render(kube)
    kept = [each for each in found if "clew-server" not in each["metadata"]["name"]]
    pod = find_resource(kept, "Deployment", "clew-operator")["spec"]["template"]["spec"]
    pod["containers"][0]["args"] = ["operator", f"--namespace={kube.namespace}"]
    with install(kube, kept) as clew:
        clew("rollout", "status", "deployment/clew-operator", "--timeout=180s")
        yield clew


def measured(kube: Kube, given: argparse.Namespace) -> dict[str, float]:
    found: dict[str, float] = {}
    log = Cluster(Path(kube.kubeconfig).parent).audit_log
    with operated(kube) as clew:
        asyncio.run(burst(kube, ["first"], annotations=STOPPED))  # the operator has begun, then
        before, since = status(clew), datetime.now(UTC)
        times = asyncio.run(burst(kube, [f"n{i}" for i in range(given.burst)], spec=NOWHERE))
        found["p50"], found["p95"] = times[len(times) // 2], times[int(len(times) * 0.95)]
        settled(kube)
        after = status(clew)
        found["cpu_ms"] = (after["cpu"] - before["cpu"]) / given.burst * 1000
        found["empty"], found["burst"] = before["rss"], after["rss"]
        if log.exists():
            found["written"], since = written(log, since), datetime.now(UTC)
            assert found["written"] >= given.burst, "the audit log does not show the operator"
            time.sleep(MINUTE)
            found["writes"] = written(log, since)
        if more := given.many - given.burst:
            asyncio.run(burst(kube, [f"m{i}" for i in range(more)], annotations=STOPPED))
            settled(kube)
        grown = status(clew)
        clew("rollout", "restart", "deployment/clew-operator")
        clew("rollout", "status", "deployment/clew-operator", "--timeout=180s")
        begun = rested(clew)
        found["rss"], found["restarted"] = grown["rss"], begun["rss"]
        found["peak"] = max(grown["peak"], begun["peak"])
    return found


@contextmanager
def a_cluster() -> Iterator[str]:
    """How to speak to one, which is left as it was found: also not there."""
    if named := os.environ.get("KUBECONFIG"):
        yield named
        return
    own = SOURCE / ".cluster/kubeconfig"
    there, make = own.exists(), ["make", "-C", str(SOURCE)]
    try:
        if subprocess.run([*make, "cluster"], stdout=sys.stderr).returncode:
            sys.exit("there is no cluster to measure on, and none could be brought up: see above")
        yield str(own)
    finally:
        if not there:
            subprocess.run([*make, "cluster-down"], stdout=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--burst", type=int, default=200)
    parser.add_argument("--many", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with a_cluster() as kubeconfig:
        kube = Kube(kubeconfig, f"clew-bench-{uuid.uuid4().hex[:8]}")
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        kube("create", "namespace", kube.namespace)
        try:
            found = measured(kube, given)
        finally:
            kube("delete", "namespace", kube.namespace, "--wait=false")
    tell(found, given)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))
    return 0


def tell(found: dict[str, float], given: argparse.Namespace) -> None:
    rows = [
        ("p95", f"apply to StatefulSet, {given.burst} in one apply, p95", P95, "s"),
        ("writes", f"the operator's writes in a minute with {given.burst} at rest", WRITES, ""),
        ("peak", f"operator's memory with {given.many}, highest", MEMORY, "MB"),
    ]
    for key, text, limit, unit in rows:
        if key not in found:
            print(f"{text}: not counted, the API server's audit log is not here")
            continue
        verdict = "ok" if found[key] <= limit else "MISSED"
        print(f"{text}: {found[key]:.2f} {unit} (at most {limit:g} {unit}): {verdict}")
    print(f"p50 {found['p50']:.2f} s; {found['cpu_ms']:.0f} ms of the operator's CPU for each")
    if "written" in found:
        print(f"{found['written'] / given.burst:.1f} writes for each until they were at rest")
    sizes = ((0, "empty"), (given.burst, "burst"), (given.many, "rss"))
    print("memory at rest:", ", ".join(f"{found[key]:.0f} MB with {n}" for n, key in sizes), end="")
    print(f", {found['restarted']:.0f} MB begun anew")


if __name__ == "__main__":
    sys.exit(main())

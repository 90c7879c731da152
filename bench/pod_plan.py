"""The time to plan which Pods to run again, in histories of 10,000 Pods.

    python bench/pod_plan.py [--pods 10000] [--json FILE]

- `pipelines`: a pipeline of five steps runs again and again on one volume; each run reads a summary
  that the one before left, so that the last result has every run among its ancestors;
- `repeated`: every step of such a history ran twice with the same results;
- `volume`: no witness sees files, so every Pod depends on all earlier ones;
- `recorded`: the ancestors of the last of 10,000 watched Pods are read from PostgreSQL first, each
  of which reads nine files of the two before it, and a dataset. All files are stored; or not those
  that the last 100 Pods left, which so run again; or only the dataset, so that all Pods do.

Prints seconds next to the target of one second: of CPU for the plans alone, which are one thread
and read nothing; as the clock says for a plan with its queries, and of CPU in this process and in
the one of the server, which do not work at the same time.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import psycopg
from cluster_lineage import fill, start_server

from clew.api.local.pod_record import find_pod_ancestry
from clew.db import connect
from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import (
    AncestorPod,
    Ancestry,
    FoundVersion,
    MadeVersion,
    VolumeWriters,
)
from clew.prov.graph import Graph
from clew.replay.pods.pod_plan import plan_pods

VOLUME = Locator("pvc://ml/data@pvc-1")
STEPS = 5
ROUNDS = 5
TARGET_SECONDS = 1.0


def found(name: str, *makers: str) -> FoundVersion:
    locator = Locator(f"{VOLUME}/{name}")
    return FoundVersion(
        locator=locator, makers=tuple(map(Uid, makers)), digest=Digest(f"blake3:{name}")
    )


def ran(uid: str, at: int, inputs: list[FoundVersion], made: str) -> AncestorPod:
    output = MadeVersion(locator=Locator(f"{VOLUME}/{made}"), digest=Digest(f"blake3:{made}"))
    return AncestorPod(
        uid=Uid(uid),
        namespace="ml",
        name=uid,
        started=at,
        ended=at + 1,
        inputs=tuple(inputs),
        outputs=(output,),
        volumes=(VOLUME,),
    )


def history(pods: list[AncestorPod], wanted: FoundVersion) -> Ancestry:
    writers = VolumeWriters(locator=VOLUME, writers=tuple((p.uid, p.started) for p in pods))
    return Ancestry(
        target="the last result",
        wanted=(wanted,),
        pods=tuple(pods),
        volumes=(writers,),
        wanted_volumes=(VOLUME,),
    )


def pipelines(count: int, *, copies: int = 1) -> Ancestry:
    pods: list[AncestorPod] = []
    steps = count // copies
    for step in range(steps):
        reads = [found(f"out{step - 1}", f"p{step - 1}x0")] if step else []
        if step >= STEPS:
            reads.append(found(f"out{step - STEPS}", f"p{step - STEPS}x0"))
        for copy in range(copies):
            pods.append(ran(f"p{step}x{copy}", 2 * (copies * step + copy), reads, f"out{step}"))
    return history(pods, found(f"out{steps - 1}", f"p{steps - 1}x0"))


def by_volume(count: int) -> Ancestry:
    whole = FoundVersion(locator=VOLUME)
    pods = [ran(f"p{at}", 2 * at, [whole], f"out{at}") for at in range(count)]
    return history(pods, found(f"out{count - 1}", f"p{count - 1}"))


KEEP = """
UPDATE content SET stored = CASE WHEN l.locator LIKE '%%/data' OR p.number < %s THEN 1 ELSE 0 END
FROM version v JOIN location l ON l.id = v.location,
LATERAL (SELECT substring(l.locator FROM '/p([0-9]+)/f')::int AS number) AS p
WHERE v.id = content.version AND l.locator LIKE 'pvc://%%@%%/%%'
"""


class Measured(NamedTuple):
    seconds: float
    cpu: float
    ancestry: Ancestry


def plan_recorded(count: int, lacking: Iterable[int]) -> dict[int, Measured]:
    """Plans, queries included: for each of `lacking`, as many of the last Pods have left nothing
    that is stored."""
    found = {}
    with start_server() as address:
        graph = Graph(connect(Path(), address=address), f"{time.time_ns():032x}")
        fill(address, graph, count, pods=count)
        (server,) = graph.connection.rows("SELECT pg_backend_pid()")[0]
        for pods in lacking:
            with psycopg.connect(address, autocommit=True) as other:
                other.execute("SET search_path TO clew")
                other.execute(KEEP, (count - pods,))
                other.execute("VACUUM ANALYZE content")
            measured = [
                measure_plan(graph, f"pod/team/p{count - 1}", server) for _ in range(ROUNDS)
            ]
            found[pods] = Measured(
                statistics.median(one.seconds for one in measured),
                statistics.median(one.cpu for one in measured),
                measured[-1].ancestry,
            )
        graph.connection.close()
    return found


def measure_plan(graph: Graph, target: str, server: int) -> Measured:
    began, cpu = time.perf_counter(), time.process_time() + cpu_seconds(server)
    ancestry = find_pod_ancestry(graph, target, None)
    plan_pods(ancestry)
    spent = time.process_time() + cpu_seconds(server) - cpu
    return Measured(time.perf_counter() - began, spent, ancestry)


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report(name: str, seconds: float, kind: str, ancestry: Ancestry) -> dict[str, float]:
    plan = plan_pods(ancestry)
    print(
        f"{name:<10} {seconds:6.2f} s {kind:<22} (target {TARGET_SECONDS:.0f} s)   "
        f"{len(plan.run):6} run, {len(plan.skipped):6} do not"
    )
    return {"seconds": seconds, "run": len(plan.run), "skipped": len(plan.skipped)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cases: dict[str, Callable[[], Ancestry]] = {
        "pipelines": lambda: pipelines(given.pods),
        "repeated": lambda: pipelines(given.pods, copies=2),
        "volume": lambda: by_volume(given.pods),
    }
    figures = {}
    for name, make in cases.items():
        ancestry = make()
        began = time.process_time()
        plan_pods(ancestry)
        figures[name] = report(name, time.process_time() - began, "of CPU", ancestry)
    for pods, one in plan_recorded(given.pods, (0, given.pods // 100, given.pods)).items():
        figure = report("recorded", one.seconds, f"in all, {one.cpu:.2f} s of CPU", one.ancestry)
        figures[f"recorded_{pods}"] = {**figure, "cpu_seconds": one.cpu}
    if given.json:
        given.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()

"""What `clew scheduler` costs a real kube-scheduler, and what it gains, on nodes that kwok plays.

    python bench/scheduler.py [--rounds 3] [--requests 2000] [--json FILE]

Three figures, each with kube-scheduler alone in the same run where that makes sense:
- how long the extender takes to answer `prioritize` and `filter` with the names of 1,000 and 5,000
  nodes, over a connection that stays open, as kube-scheduler keeps one;
- how many Pods a second are scheduled on 1,000 nodes: by kube-scheduler with the extender, with the
  same configuration without it, and with its default configuration, in alternating rounds. The Pods
  are there before the scheduler starts;
- how near 500 Pods that compete for 1,000 nodes are to their clients, as a ratio to the best
  assignment: with the extender, and by kube-scheduler alone.
"""

import argparse
import http.client
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.cluster.operator import free_port
from tests.cluster.schedulers import (
    Api,
    Extender,
    KubeScheduler,
    assign,
    fake_cluster,
    make_map,
    make_pod,
    scheduling,
    write_configuration,
)
from tests.wait import wait_until

LIMITS = {1000: 3.0, 5000: 10.0}
"""Milliseconds that 99 of 100 requests may take, by the number of nodes."""
RATE = 0.9
NEARNESS = 1.15
PODS, LOCATIONS = 1000, 10
SCHEDULED = 'scheduler_schedule_attempts_total{profile="latency-aware",result="scheduled"}'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as place, fake_cluster(Path(place) / "cluster") as api:
        folder = Path(place)
        for count in LIMITS:
            found[f"answers_{count}"] = measure_answers(api, folder, count, given.requests)
        found["rates"] = measure_rates(api, folder, given.rounds)
        found["nearness"] = measure_nearness(api, folder)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 0


def measure_answers(api: Api, folder: Path, count: int, requests: int) -> dict[str, list[float]]:
    """Milliseconds of each request, by verb."""
    api.add_nodes(make_map(count, LOCATIONS))
    port = free_port()
    times: dict[str, list[float]] = {"prioritize": [], "filter": []}
    with Extender(folder, api.kubeconfig, port) as extender:
        wait_until(
            "all latencies count",
            lambda: extender.metrics().get("clew_scheduler_latencies") == count * LOCATIONS,
        )
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(requests):
            body = make_request(number, count)
            for verb, taken in times.items():
                began = time.perf_counter()
                connection.request("POST", f"/{verb}", body)
                answer = connection.getresponse()
                answer.read()
                taken.append((time.perf_counter() - began) * 1000)
                assert answer.status == 200
        connection.close()
    api.clear()
    for verb, taken in times.items():
        ranked = sorted(taken)
        p99 = ranked[int(0.99 * len(ranked))]
        verdict = "ok" if p99 <= LIMITS[count] else "MISSED"
        print(
            f"{verb} with {count} nodes: p50 {statistics.median(ranked):.2f} ms, p99 {p99:.2f} ms "
            f"(at most {LIMITS[count]:g} ms): {verdict}",
            flush=True,
        )
    return times


def make_request(number: int, nodes: int) -> bytes:
    pod = make_pod(f"p{number}", f"L{number % LOCATIONS}", uid=f"u{number}", namespace="default")
    names = [f"n{n}" for n in range(nodes)]
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()


def measure_rates(api: Api, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Pods a second, by configuration."""
    api.add_nodes(make_map(1000, LOCATIONS))
    rates: dict[str, list[float]] = {"extender": [], "without": [], "default": []}
    for _ in range(rounds):
        for name, found in rates.items():
            found.append(measure_rate(api, folder, name))
    api.clear()
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for name, rate in medians.items():
        print(f"Pods a second, 1,000 nodes, {name}: {rate:.0f}", flush=True)
    ratio = medians["extender"] / medians["without"]
    verdict = "ok" if ratio >= RATE else "MISSED"
    print(f"with the extender, to without: {ratio:.2f} (at least {RATE}): {verdict}", flush=True)
    print(
        "to the default configuration, which looks at 42 % of the nodes: "
        f"{medians['extender'] / medians['default']:.2f}"
    )
    return rates


def measure_rate(api: Api, folder: Path, name: str) -> float:
    api.add_pods(*(make_pod(f"p{n}", f"L{n % LOCATIONS}") for n in range(PODS)))
    port = free_port()
    written = write_configuration(folder, api.kubeconfig, port)
    if name != "extender":
        configuration = yaml.safe_load(written.read_text())
        del configuration["extenders"]
        if name == "default":
            del configuration["percentageOfNodesToScore"]
        written.write_text(yaml.safe_dump(configuration))
    with (
        Extender(folder, api.kubeconfig, port) if name == "extender" else nullcontext() as extender
    ):
        if extender is not None:
            wait_until(
                "all latencies count",
                lambda: extender.metrics().get("clew_scheduler_latencies") == 1000 * LOCATIONS,
            )
        with KubeScheduler(folder, written) as scheduler:
            rate = follow_rate(scheduler)
            api.wait_for_placements(PODS)
    api.clear_pods()
    return rate


def follow_rate(scheduler: KubeScheduler) -> float:
    """Pods a second, between the first tenth and the last one."""
    samples: list[tuple[float, float]] = []
    while not samples or samples[-1][1] < 0.9 * PODS:
        samples.append((time.perf_counter(), scheduler.metrics().get(SCHEDULED, 0.0)))
        time.sleep(0.05)
    middle = [(at, done) for at, done in samples if done >= 0.1 * PODS]
    (began, first), (ended, last) = middle[0], middle[-1]
    return (last - first) / (ended - began)


def measure_nearness(api: Api, folder: Path) -> dict[str, float]:
    """The mean latency of competing Pods, as a ratio to that of the best assignment."""
    known = make_map(1000, LOCATIONS)
    wanted = [f"L{min(n % 40, LOCATIONS - 1)}" for n in range(500)]  # most want the last one
    api.add_nodes(known, pods="1")
    best = assign(known, wanted, 1)
    found = {}
    with scheduling(folder, api.kubeconfig) as pair:
        pair.await_latencies(1000 * LOCATIONS)
        found["extender"] = place_all(api, known, wanted) / best
    written = write_configuration(folder, api.kubeconfig, free_port())
    configuration = yaml.safe_load(written.read_text())
    del configuration["extenders"]
    written.write_text(yaml.safe_dump(configuration))
    with KubeScheduler(folder, written):
        found["without"] = place_all(api, known, wanted) / best
    api.clear()
    verdict = "ok" if found["extender"] <= NEARNESS else "MISSED"
    print(
        f"mean latency of 500 competing Pods on 1,000 nodes, to the best assignment "
        f"({best / len(wanted):.1f} ms): {found['extender']:.3f} (at most {NEARNESS}): {verdict}; "
        f"kube-scheduler alone {found['without']:.1f}",
        flush=True,
    )
    return found


def place_all(api: Api, known: dict[str, dict[str, float]], wanted: list[str]) -> float:
    """Schedule the Pods; the sum of their latencies."""
    api.add_pods(*(make_pod(f"p{n}", location) for n, location in enumerate(wanted)))
    placed = api.wait_for_placements(len(wanted))
    api.clear_pods()
    return sum(known[node][wanted[int(pod[1:])]] for pod, node in placed.items())


if __name__ == "__main__":
    sys.exit(main())

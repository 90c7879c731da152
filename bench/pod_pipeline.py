"""A pipeline of five Pods with the witnesses of a cluster, as a ratio to the same without them.

    python bench/pod_pipeline.py [--rounds 7] [--json FILE]

It takes the cluster that KUBECONFIG names, else that of `make cluster`, which it brings up where it
is not there, and installs the webhook in it.
The workload of `examples/cluster` runs in two namespaces in turn. In one, the node agents hash and
store every file, the webhook adds the sidecar to each Pod, and the audit log is read. The other is
not selected, and the reader of the audit log is stopped meanwhile. The object store is versitygw.
There are 100,000 readings of each site in place of 500, and 200 rounds of training in place of 20,
so that the pipeline takes a minute or two. A
round is the time from the creation of the first Pod to the success of the last; the ratio is the
median over the rounds.
"""

import argparse
import json
import signal
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from operator_load import a_cluster

SOURCE = Path(__file__).parents[1]
sys.path.insert(0, str(SOURCE))

from tests.cluster.kube import Kube  # noqa: E402
from tests.cluster.location import address_for_pods  # noqa: E402
from tests.cluster.node_agents import create_token, run_node_agents  # noqa: E402
from tests.cluster.pumps import (  # noqa: E402
    EXAMPLE,
    IMAGE,
    STEPS,
    prepare_namespace,
    run_steps,
)
from tests.cluster.sidecars import (  # noqa: E402
    install_webhook,
    select_namespace,
    wait_for_webhook,
)
from tests.driver import Project  # noqa: E402
from tests.local.s3_sidecar import KEY, SECRET, s3_server  # noqa: E402
from tests.local.server import run_server  # noqa: E402
from tools.cluster import lifecycle  # noqa: E402

TARGET = 1.10
ROWS, TRAINING_ROUNDS = 100_000, 200
POLICY = """
[[select]]
namespaces = ["{namespace}"]
[[content]]
namespaces = ["{namespace}"]
"""


@contextmanager
def namespace(cluster: Kube, name: str) -> Iterator[Kube]:
    cluster("create", "namespace", name)
    try:
        yield Kube(cluster.kubeconfig, name)
    finally:
        cluster("delete", "namespace", name, "--wait=false")


def set_value(kube: Kube, config_map: str, key: str, value: str) -> None:
    patch = json.dumps({"data": {key: value}})
    kube("patch", "configmap", config_map, "--type=merge", "--patch", patch)


def measure(kube: Kube) -> float:
    """Seconds of one run of the pipeline."""
    for step in STEPS:
        kube("delete", "pod", step, "--ignore-not-found", "--wait")
    began = time.monotonic()
    run_steps([kube])
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with a_cluster() as kubeconfig:
        times = measure_rounds(Kube(kubeconfig), given.rounds)
    ratios = [b / a for a, b in zip(times["native"], times["watched"], strict=True)]
    ratio = statistics.median(ratios)
    for kind, seconds in times.items():
        print(f"{kind:<8} {statistics.median(seconds):6.2f} s for {len(STEPS)} Pods")
    added = (statistics.median(times["watched"]) - statistics.median(times["native"])) / len(STEPS)
    print(f"added    {added:6.2f} s for each Pod")
    print(f"ratio    {ratio:6.2f}   target {TARGET:.2f}   {'ok' if ratio <= TARGET else 'MISSED'}")
    if given.json:
        given.json.write_text(json.dumps({"times": times, "ratio": ratio}))


def measure_rounds(cluster: Kube, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round, by namespace."""
    log = Path(cluster.kubeconfig).parent / "logs" / "audit.log"
    name = f"clew-bench-{uuid.uuid4().hex[:6]}"
    times: dict[str, list[float]] = {"native": [], "watched": []}
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        agents = stack.enter_context(namespace(cluster, name))
        kubes = {kind: stack.enter_context(namespace(cluster, f"{name}-{kind}")) for kind in times}
        address = address_for_pods(cluster)
        port = stack.enter_context(s3_server(place / "s3", address=address))
        s3 = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://{address}:{port}",
        }
        lifecycle.add_image(Path(cluster.kubeconfig).parent, IMAGE, EXAMPLE / "Containerfile")
        project = Project(place / "project")
        server = stack.enter_context(run_server(project, "--host", address))
        token = create_token(server)
        policy = POLICY.format(namespace=f"{name}-watched")
        stack.enter_context(
            run_node_agents(agents, server, place / "state", policy=policy, token=token)
        )
        observer = {**project.environment, **server.variables, "CLEW_TOKEN": token}
        audit = project.start("agent", "audit", "--log", str(log), env=observer)
        stack.callback(audit.wait)
        stack.callback(audit.terminate)
        stack.callback(audit.send_signal, signal.SIGCONT)
        webhook = stack.enter_context(install_webhook(cluster))
        select_namespace(kubes["watched"])
        for kind, kube in kubes.items():
            (place / "s3" / "objects" / f"pumps-{kind}").mkdir()
            prepare_namespace(kube, s3, f"pumps-{kind}")
            set_value(kube, "bucket", "ROWS", str(ROWS))
            settings = json.dumps({"rounds": TRAINING_ROUNDS})
            set_value(kube, "settings", "settings.json", settings)
        wait_for_webhook(webhook, kubes["watched"])
        for kube in kubes.values():
            measure(kube)  # the volume is made, the images are there
        for _ in range(rounds):
            for kind, kube in kubes.items():
                audit.send_signal(signal.SIGSTOP if kind == "native" else signal.SIGCONT)
                times[kind].append(measure(kube))
    return times


if __name__ == "__main__":
    main()

"""The workload of `examples/cluster`: its lineage by the witnesses, and its reproduction.

It runs in three namespaces, which differ in what the node agents store.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store
from tests.cluster.audit_agents import begin_now
from tests.cluster.kube import Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.cluster.node_agents import create_token, have_delivered, run_node_agents
from tests.cluster.pumps import EXAMPLE, IMAGE, STEPS, make_buckets, prepare_namespace, run_steps
from tests.cluster.sidecars import (
    ONE_WEBHOOK,
    install_webhook,
    select_namespace,
    wait_for_webhook,
)
from tests.driver import Project
from tests.local.s3_sidecar import KEY, SECRET, s3_server
from tests.local.server import Server, run_server
from tests.wait import wait_until
from tools.cluster import lifecycle
from tools.cluster.binaries import search_path
from tools.cluster.images import BUSYBOX
from tools.cluster.nodes import ctr

from clew.agents.sidecars.traffic_sidecar_names import LABEL

pytestmark = [pytest.mark.cluster, ONE_WEBHOOK]

POLICY = """
[[select]]
namespaces = ["{spaces}-*", "pumps"]
[[content]]
namespaces = ["{spaces}-raw-*"]
paths = ["/raw/**"]
[[content]]
namespaces = ["{spaces}-model-*"]
paths = ["/model.json"]
"""
RUNS = {
    "none": ["ingest", "prepare-north", "train", "evaluate"],
    "raw": ["prepare-north", "train", "evaluate"],
    "model": ["evaluate"],
}
"""The Pods that have to run again, by what is stored."""
ANCESTORS = {*STEPS} - {"prepare-south"}
ATTEMPTS = 3
"""A busy node may run a container before its agent watches it. Its lineage is that of the whole
volume then, so the workload runs again in another namespace."""
BUCKETS = [f"pumps-{stored}-{attempt}" for stored in RUNS for attempt in range(ATTEMPTS)]
BUCKETS.append("pumps")
LABELS = "labels.csv"
SECRETS = ("--network", "--secret", "AWS_ACCESS_KEY_ID", "--secret", "AWS_SECRET_ACCESS_KEY")


@dataclass
class Workload:
    """The namespaces by what is stored of them: `none`, `raw`, `model`."""

    kubes: dict[str, Kube]
    project: Project
    """What all witnesses know."""
    audited: Project
    """What the audit witness alone knows."""
    s3: dict[str, str]
    """The variables of a client of the buckets."""
    server: Server
    """It shows what `project` knows."""
    deliver: Callable[[], None]
    """Wait until the agents have sent all that they saw."""

    def metrics(self, stored: str) -> str:
        return f"pvc://{self.kubes[stored].namespace}/data/metrics.json"

    def bucket(self, stored: str) -> str:
        return find_bucket(self.kubes[stored])

    def labels(self, stored: str) -> str:
        """The object that `train` reads."""
        return f"s3://{self.bucket(stored)}/{LABELS}"

    def plan(self, stored: str) -> dict[str, Any]:
        plan: dict[str, Any] = self.project.json("reproduce", self.metrics(stored), "--dry-run")
        return plan

    def was_seen(self, stored: str) -> bool:
        """Whether each file was seen. Otherwise the lineage has more Pods, and lacks none."""
        assert pods_of(self.trace(stored)) >= ANCESTORS
        return len(self.plan(stored)["plan"]) == len(RUNS[stored])

    def trace(self, stored: str) -> dict[str, Any]:
        traced: dict[str, Any] = self.project.json("trace", self.metrics(stored))
        return traced


@pytest.fixture(scope="module")
def workload(
    cluster: Kube, spaces: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workload]:
    require_local_cluster(cluster)
    place = tmp_path_factory.mktemp("lineage")
    folder = Path(cluster.kubeconfig).parent
    log = folder / "logs" / "audit.log"
    lifecycle.add_image(folder, IMAGE, EXAMPLE / "Containerfile")
    address = address_for_pods(cluster)
    states = {name: str(place / f"audit-{name}") for name in ("all", "alone")}
    for state in states.values():
        begin_now(Path(state), log)
    with ExitStack() as stack:
        port = stack.enter_context(s3_server(place / "s3", address=address))
        s3 = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://{address}:{port}",
        }
        audited = Project(place / "audited", KUBECONFIG=cluster.kubeconfig)
        project = Project(place / "project", KUBECONFIG=cluster.kubeconfig, **s3)
        server = stack.enter_context(run_server(project, "--host", address))
        webhook = stack.enter_context(install_webhook(cluster))

        def create_namespace(name: str) -> Kube:
            cluster("create", "namespace", name)
            stack.callback(cluster, "delete", "namespace", name, "--wait=false")
            return Kube(cluster.kubeconfig, name)

        agents = create_namespace(spaces)
        make_buckets(agents, s3, BUCKETS)
        token, policy = create_token(server), POLICY.format(spaces=spaces)
        stack.enter_context(
            run_node_agents(agents, server, place / "state", policy=policy, token=token)
        )
        observer = {**project.environment, **server.variables, "CLEW_TOKEN": token}
        read = ("agent", "audit", "--log", str(log), "--once", "--state")

        def deliver() -> None:
            project(*read, states["all"], env=observer)
            wait_until("the agents have delivered", lambda: have_delivered(place / "state"))

        found = Workload({}, project, audited, s3, server, deliver)
        missing = [*RUNS]
        for attempt in range(ATTEMPTS):
            kubes = {each: create_namespace(f"{spaces}-{each}-{attempt}") for each in missing}
            for kube in kubes.values():
                select_namespace(kube)
                prepare_namespace(kube, s3, find_bucket(kube))
                wait_for_webhook(webhook, kube)
            run_steps(kubes.values())
            deliver()
            found.kubes |= kubes
            missing = [each for each in missing if not found.was_seen(each)]
            if not missing:
                break
        assert not missing
        audited(*read, states["alone"])
        yield found


def find_bucket(kube: Kube) -> str:
    """The bucket of a namespace."""
    return "-".join(("pumps", *kube.namespace.split("-")[-2:]))


def pods_of(lineage: dict[str, Any]) -> set[str]:
    """The names of the Pods in a lineage."""
    return {node["pod"].partition("/")[2] for node in lineage["nodes"] if node.get("pod")}


def locators_read(lineage: dict[str, Any], pod_name: str) -> set[str]:
    """What a Pod read, of what is in a lineage."""
    nodes = {node["id"]: node for node in lineage["nodes"]}
    readers = {
        each
        for each, node in nodes.items()
        if (node.get("pod") or "").partition("/")[2] == pod_name
    }
    return {
        nodes[edge["from"]].get("locator", "")
        for edge in lineage["edges"]
        if edge["kind"] == "used" and edge["to"] in readers
    }


def test_the_metric_is_traced_to_the_raw_data_and_not_to_the_other_preprocessor(
    workload: Workload,
) -> None:
    traced = workload.trace("none")
    assert pods_of(traced) == ANCESTORS
    assert any("raw/north.csv" in node["label"] for node in traced["nodes"])
    assert workload.labels("none") in locators_read(traced, "train")
    used = workload.project.json("trace", workload.labels("none"))
    assert pods_of(used) == {"ingest"}
    assert not any("south" in node["label"] for node in traced["nodes"])


def test_by_the_audit_witness_alone_the_other_preprocessor_is_an_ancestor(
    workload: Workload,
) -> None:
    traced = workload.audited.json("trace", workload.metrics("none"))
    assert pods_of(traced) >= {*STEPS}
    plan = workload.audited.json("reproduce", workload.metrics("none"), "--dry-run")
    assert plan["pods_by_volume"] == len(STEPS)
    assert [one["pod"] for one in plan["plan"]] == [*STEPS]


@pytest.mark.parametrize(("stored", "runs"), RUNS.items())
def test_the_old_metric_is_made_again_bit_for_bit(
    workload: Workload, stored: str, runs: list[str]
) -> None:
    kube = workload.kubes[stored]
    script = "echo overwritten > /data/raw/north.csv; echo {} > /data/model.json"
    overwrite = pod("overwrite", "sh", "-c", script, volume="data")
    overwrite["metadata"]["labels"][LABEL] = "false"
    kube.run(overwrite)
    bucket = S3Store(
        workload.bucket(stored),
        config={name.lower(): value for name, value in workload.s3.items()},  # type: ignore[arg-type]
        client_options={"allow_http": True},
    )
    obstore.put(bucket, LABELS, b"overwritten")
    plan = workload.plan(stored)
    assert [one["pod"] for one in plan["plan"]] == runs
    assert (plan["pods_by_file"], plan["pods_by_volume"]) == (len(runs), len(STEPS))
    done = workload.project.json("reproduce", workload.metrics(stored), *SECRETS)
    assert done["verdict"] == "identical", done
    assert done["compared"] >= len(runs)


def test_the_image_behind_a_tag_is_replaced(cluster: Kube, kube: Kube, tmp_path: Path) -> None:
    """The diff names the digests, and what ran first runs again."""
    require_local_cluster(cluster)
    folder = Path(cluster.kubeconfig).parent
    running = lifecycle.find_cluster(folder)
    assert running is not None
    lifecycle.add_image(folder, IMAGE, EXAMPLE / "Containerfile")
    tag = f"docker.io/clew/tagged:{kube.namespace}"
    images = {}
    log, state = folder / "logs" / "audit.log", tmp_path / "audit"
    begin_now(state, log)
    try:
        for name, image in (("first", BUSYBOX), ("second", IMAGE)):
            for node in running.nodes:
                ctr(running, node, "images", "tag", "--force", image, tag)
            kube.run(pod(name, "true", image=tag))
            status = kube.get("pod", name)["status"]["containerStatuses"][0]
            images[name] = status["imageID"].rpartition("@")[2]
        assert images["first"] != images["second"]
        project = Project(tmp_path, KUBECONFIG=cluster.kubeconfig)
        project("agent", "audit", "--log", str(log), "--once", "--state", str(state))
        pods = [f"pod/{kube.namespace}/{name}" for name in images]
        diff = project.json("diff", *pods, status=3)
        (change,) = diff["images"]
        assert (change["a"], change["b"]) == (images["first"], images["second"])
    finally:
        for node in running.nodes:
            ctr(running, node, "images", "rm", tag)


def test_the_commands_of_the_example(workload: Workload, cluster: Kube, tmp_path: Path) -> None:
    """Those of `examples/cluster/README.md`, but for `--here`, which needs a container engine."""
    page = (EXAMPLE / "README.md").read_text()
    prepare = re.findall(r"^    (kubectl .+)$", page, re.MULTILINE)
    commands = re.findall(
        r"^\d+\. .*?`((?:\./run\.sh|clew |kubectl |--here)[^`]*)`", page, re.MULTILINE
    )
    assert len(commands) == 10, commands
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(cluster("config", "view", "--raw", "--flatten"))
    environment = {
        **workload.project.environment,
        **workload.server.variables,
        **workload.s3,
        "KUBECONFIG": str(kubeconfig),
        "PATH": f"{Path(sys.executable).parent}:{search_path()}:{os.environ['PATH']}",
    }

    def run(command: str, status: int = 0) -> str:
        done = subprocess.run(
            ["sh", "-c", command], cwd=EXAMPLE, env=environment, capture_output=True, text=True
        )
        assert done.returncode == status, (command, done.stdout, done.stderr)
        return done.stdout

    cluster("delete", "namespace", "pumps", "--ignore-not-found")  # of a killed test
    try:
        for command in prepare:
            run(command)
        run_pods, trace, impact, edit, again, diff, plan, reproduce, here, uses_of_image = commands
        assert run_pods == again == "./run.sh"
        assert here == "--here"
        run(run_pods)
        workload.deliver()
        traced = run(trace)
        assert "prepare-north" in traced
        assert "prepare-south" not in traced
        assert "train" in run(impact)
        between = datetime.now(UTC).isoformat(timespec="seconds")
        run(edit)
        run(again)
        workload.deliver()
        (train,) = re.findall(r"pumps/train.*?\b(e\d+)\b", traced)[:1]
        assert "settings" in run(diff.replace("e25", train), status=3)
        planned = run(plan.replace("TIME", between))
        assert "Pods to run: 4 by file, 5 by volume" in planned
        assert "identical" in run(reproduce.replace("TIME", between))
        (digest,) = set(re.findall(r"image://(sha256:[0-9a-f]{64})", traced))
        assert "evaluate" in run(uses_of_image.replace("sha256:…", digest))
    finally:
        cluster("delete", "namespace", "pumps", "--ignore-not-found", "--wait=false")

"""The file witness in Pods of a namespace whose Pods may have no privilege (`baseline`)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.deployment import render
from tests.cluster.kube import Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.cluster.node_agents import create_token
from tests.cluster.sidecars import INJECT, ONE_WEBHOOK, install_webhook
from tests.cluster.test_node_agent import claim, trace
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

from clew.agents.pod.file_sidecar_names import ANNOTATION, CONTAINER, DEVICE, SIDECAR

pytestmark = [pytest.mark.cluster, ONE_WEBHOOK]


@pytest.fixture(scope="module")
def inject(cluster: Kube) -> Iterator[Kube]:
    require_local_cluster(cluster)
    with install_webhook(cluster) as own:
        own.wait_for(f"deployment/{INJECT}", "condition=Available")
        yield own


@pytest.fixture(scope="module")
def device(cluster: Kube, spaces: str) -> Iterator[str]:
    """The node whose kubelet offers the device: those of the test cluster share one directory for
    device plugins, so the one that started last has it."""
    own = Kube(cluster.kubeconfig, f"{spaces}-device")
    found = render(cluster, "agents/fuse")
    for each in found:
        key = "name" if each["kind"] == "Namespace" else "namespace"
        each["metadata"][key] = own.namespace
    own.apply(*found)

    def find_node() -> str:
        for node in cluster.get("nodes")["items"]:
            if node["status"]["allocatable"].get(DEVICE, "0") != "0":
                return str(node["metadata"]["name"])
        return ""

    try:
        yield str(wait_until("a node offers the device", find_node))
    finally:
        cluster("delete", "namespace", own.namespace, "--wait=false")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def server(kube: Kube, project: Project) -> Iterator[Server]:
    with run_server(project, "--host", address_for_pods(kube)) as server:
        yield server


@pytest.fixture
def team(inject: Kube, device: str, kube: Kube, server: Server) -> Kube:
    """What the docs tell the administrator of a namespace to do."""
    kube("label", "namespace", kube.namespace, "pod-security.kubernetes.io/enforce=baseline")
    literals = [f"--from-literal=server={server.address}"]
    literals.append(f"--from-literal=token={create_token(server)}")
    kube("create", "secret", "generic", "clew-agents", *literals)
    group = f"--group=system:serviceaccounts:{kube.namespace}"
    kube("create", "rolebinding", "clew-files", "--clusterrole=clew-files", group)
    kube.apply(claim("data"))
    return kube


def observed(name: str, script: str, **more: Any) -> dict[str, Any]:
    """A Pod that asks for the witness."""
    made = pod(name, "sh", "-c", f"cd /data; {script}", volume="data", **more)
    made["metadata"]["annotations"] = {ANNOTATION: SIDECAR}
    made["spec"]["terminationGracePeriodSeconds"] = 60  # for the delivery
    return made


def run(kube: Kube, made: dict[str, Any]) -> str:
    kube.apply(made)
    name = f"pod/{made['metadata']['name']}"
    kube.wait_for(name, "jsonpath={.status.phase}=Succeeded")
    return kube("logs", name, "--container=main")


def test_unprivileged_pods_record_the_files_of_their_containers(
    team: Kube, project: Project
) -> None:
    run(team, observed("ingest", "umask 0; echo 'b a' > raw; echo other > unrelated; chmod 777 ."))
    sorter = observed("sorter", "tr ' ' '\\n' < raw | sort > sorted.tmp; mv sorted.tmp sorted; id")
    sorter["spec"]["securityContext"] = {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000}
    assert "uid=1000 gid=1000 groups=1000,2000" in run(team, sorter)
    run(team, observed("bystander", "wc -c < unrelated > count"))
    trainer = observed("trainer", "md5sum < sorted > model; stat -c %u sorted; exit 0")
    assert run(team, trainer).split() == ["1000"]
    target = f"pvc://{team.namespace}/data/model"

    def find_labels() -> set[str]:
        labels = trace(project, target)
        return labels if any("raw" in label for label in labels) else set()

    labels = wait_until("the lineage has arrived", find_labels)
    for expected in ("ingest", "sorter", "trainer", "sorted"):
        assert any(expected in label for label in labels), labels
    for unexpected in ("bystander", "unrelated", "count"):
        assert not any(unexpected in label for label in labels), labels
    (found,) = (one for one in team.get("pods")["items"] if one["metadata"]["name"] == "sorter")
    sidecar, *_ = found["spec"]["initContainers"]
    assert sidecar["name"] == CONTAINER
    assert "privileged" not in json.dumps(found["spec"])


def test_where_no_user_namespace_may_be_made_the_command_runs_and_a_gap_says_so(
    team: Kube, project: Project
) -> None:
    made = observed("filtered", "echo x > file; cat file")
    made["spec"]["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}
    assert run(team, made) == "x\n"

    def find_gaps() -> str:
        ran = project.command("trace", f"pod/{team.namespace}/filtered", "--json")
        return json.dumps(json.loads(ran.stdout)["nodes"]) if ran.returncode == 0 else ""

    gaps = wait_until("the gap has arrived", find_gaps)
    assert "the container may not make a user namespace" in gaps


def test_pods_that_run_already_are_created_again(team: Kube, device: str, project: Project) -> None:
    bare = pod("bare", "sleep", "600", volume="data")
    owned = pod("owned", "sleep", "600", volume="data")
    for one in (bare, owned):  # they create the volume on their node, and need the device later
        one["spec"]["nodeSelector"] = {"kubernetes.io/hostname": device}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "owner"},
        "spec": {
            "selector": {"matchLabels": {"app": "owned"}},
            "template": {
                "metadata": {"labels": {"app": "owned"}},
                "spec": {**owned["spec"], "restartPolicy": "Always"},
            },
        },
    }
    team.apply(bare, owner)
    team.wait_for("pod/bare", "condition=Ready")

    def recreate(*words: str) -> int:
        environment = project.environment | {"KUBECONFIG": team.kubeconfig}
        given = ("agent", "recreate", *words, "--namespace", team.namespace)
        return project.command(*given, env=environment).returncode

    before = team.get("pod", "bare")["metadata"]["uid"]
    assert recreate("pod/bare") != 0  # nobody agreed to delete it
    assert team.get("pod", "bare")["metadata"]["uid"] == before
    assert recreate("pod/bare", "--delete") == 0
    assert recreate("deployment/owner") == 0
    team.wait_for("pod/bare", "condition=Ready")
    team("rollout", "status", "deployment/owner", "--timeout=180s")
    found = team.get("pods")["items"]
    sidecars = [
        one["metadata"]["name"].partition("-")[0]
        for one in found
        if one["spec"].get("initContainers", [{}])[0].get("name") == CONTAINER
    ]
    assert sorted(sidecars) == ["bare", "owner"]

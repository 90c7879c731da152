"""The file witness on every node: which Pod read what another Pod wrote, Pods unchanged."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.kube import Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.cluster.node_agents import create_token, run_node_agents
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def server(kube: Kube, project: Project) -> Iterator[Server]:
    with run_server(project, "--host", address_for_pods(kube)) as server:
        yield server


@pytest.fixture
def agents(kube: Kube, server: Server, tmp_path: Path) -> Iterator[Kube]:
    """The manifests, in the test's own namespace; the agents watch this namespace alone."""
    require_local_cluster(kube)
    policy = f'[[select]]\nnamespaces = ["{kube.namespace}"]\n'
    token, state = create_token(server), tmp_path / "node-state"
    with run_node_agents(kube, server, state, policy=policy, token=token):
        yield kube


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    about = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def trace(project: Project, target: str) -> set[str]:
    """The labels of everything that a file came from."""
    ran = project.command("trace", target, "--json")
    if ran.returncode:
        return set()
    return {node["label"] for node in json.loads(ran.stdout)["nodes"]}


@pytest.mark.parametrize("witness", ["fanotify", "fuse"])
def test_a_file_is_traced_to_the_pods_and_files_it_came_from(
    agents: Kube, project: Project, nodes: list[str], witness: str
) -> None:
    agents.apply(claim("data"))

    def run(name: str, script: str) -> None:
        made = pod(name, "sh", "-c", f"cd /data; {script}", volume="data", on=nodes[0])
        made["metadata"]["annotations"] = {"clew.dev/file-witness": witness}
        agents.run(made)

    run("ingest", "echo 'b a' > raw; echo other > unrelated")
    run("sorter", "tr ' ' '\\n' < raw | sort > sorted.tmp; mv sorted.tmp sorted")
    run("bystander", "wc -c < unrelated > count")
    run("trainer", "md5sum < sorted > model")
    target = f"pvc://{agents.namespace}/data/model"

    def find_labels() -> set[str]:
        labels = trace(project, target)
        return labels if any("raw" in label for label in labels) else set()

    labels = wait_until("the lineage has arrived", find_labels)
    for expected in ("ingest", "sorter", "trainer", "sorted"):
        assert any(expected in label for label in labels), labels
    for unexpected in ("bystander", "unrelated", "count"):
        assert not any(unexpected in label for label in labels), labels
    mounted = f"pods -l app.kubernetes.io/name=clew-node --field-selector spec.nodeName={nodes[0]}"
    (agent,) = agents.get(*mounted.split())["items"]
    counts = agents("exec", agent["metadata"]["name"], "--", "cat", "/var/lib/clew/status.json")
    assert json.loads(counts)["containers"] == 4

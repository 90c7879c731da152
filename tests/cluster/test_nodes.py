"""The nodes are real: they are ready, run Pods, and let their users look into them."""

import pytest
from tests.cluster.kube import Kube, pod

pytestmark = pytest.mark.cluster


def test_two_nodes_are_ready(cluster: Kube) -> None:
    conditions = [
        {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}
        for node in cluster.get("nodes")["items"]
    ]
    assert len(conditions) >= 2
    assert {node["Ready"] for node in conditions} == {"True"}


def test_each_node_runs_a_pod_that_was_placed_there(kube: Kube, nodes: list[str]) -> None:
    where = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    for number, node in enumerate(nodes):
        said = kube.run(pod(f"says-{number}", "sh", "-c", "echo $NODE", on=node, env=[where]))
        assert said == f"{node}\n"


def test_logs_and_exec_reach_a_running_pod(kube: Kube, nodes: list[str]) -> None:
    for number, node in enumerate(nodes):
        name = f"runs-{number}"
        kube.apply(pod(name, "sh", "-c", f"echo begun on {number}; exec sleep 3600", on=node))
        kube.wait_for(f"pod/{name}", "condition=Ready")
        assert kube("logs", name) == f"begun on {number}\n"
        assert kube("exec", name, "--", "sh", "-c", "echo $((6 * 7))") == "42\n"
        given = kube("exec", "--stdin", name, "--", "tr", "a-z", "A-Z", given="thread")
        assert given == "THREAD"


def test_a_pod_that_fails_says_so(kube: Kube) -> None:
    kube.apply(pod("fails", "sh", "-c", "exit 3"))
    kube.wait_for("pod/fails", "jsonpath={.status.phase}=Failed")
    (status,) = kube.get("pod", "fails")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 3


def test_memory_is_limited(kube: Kube) -> None:
    """The cgroups are real, too: who takes more than the limit is ended."""
    greedy = pod(
        "greedy",
        *("dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"),
        resources={"limits": {"memory": "50Mi"}},
    )
    kube.apply(greedy)
    kube.wait_for("pod/greedy", "jsonpath={.status.phase}=Failed")
    (status,) = kube.get("pod", "greedy")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["reason"] == "OOMKilled"

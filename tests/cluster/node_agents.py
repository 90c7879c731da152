"""Run the node agents of deploy/agents/node for the namespaces of one test."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import zstandard
from tests.cluster.deployment import find_resource, render
from tests.cluster.kube import Kube
from tests.local.server import Server
from tests.wait import wait_until

from clew.agents.spool import MAX_BATCH_BYTES
from clew.prov.events import AnyEvent, from_batch

PODS = "app.kubernetes.io/name=clew-node"
CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding")


def create_token(server: Server) -> str:
    """A token that can send observations and nothing else."""
    with server.client() as client:
        asked = {"name": "agents", "days": 1, "scope": "observe"}
        return str(client.post("/api/v1/tokens", json=asked).json()["token"])


@contextmanager
def run_node_agents(
    kube: Kube, server: Server, state: Path, *, policy: str, token: str
) -> Iterator[None]:
    """The manifests in the namespace of `kube`. `policy`: what they watch and store (TOML);
    `state`: a directory of this machine, which is that of the nodes."""
    found = [each for each in render(kube, "agents/node") if each["kind"] != "Namespace"]
    for each in found:
        about = each["metadata"]
        if each["kind"] in CLUSTER_WIDE:
            about["name"] = f"{about['name']}-{kube.namespace}"
        else:
            about["namespace"] = kube.namespace
    binding = find_resource(found, "ClusterRoleBinding", f"clew-node-{kube.namespace}")
    binding["roleRef"]["name"] = f"clew-node-{kube.namespace}"
    binding["subjects"][0]["namespace"] = kube.namespace
    find_resource(found, "ConfigMap", "clew-node-policy")["data"]["policy.toml"] = policy
    spec = find_resource(found, "DaemonSet", "clew-node")["spec"]["template"]["spec"]
    volume = next(each for each in spec["volumes"] if each["name"] == "state")
    volume["hostPath"]["path"] = str(state)
    (container,) = spec["containers"]
    kubelet = Path(kube.kubeconfig).parent / "$(NODE_NAME)" / "kubelet"
    container["args"].append(f"--kubelet=/proc/1/root{kubelet}")
    mounts = container["volumeMounts"]
    next(each for each in mounts if each["name"] == "state")["subPathExpr"] = "$(NODE_NAME)"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "clew-agents", "namespace": kube.namespace},
        "stringData": {"server": server.address, "token": token},
    }
    kube.apply(secret, *found)
    try:
        kube("rollout", "status", "daemonset/clew-node", "--timeout=180s")
        wait_until("the agents watch", lambda: all_watch(kube))
        yield
    finally:
        for each in found:
            if each["kind"] in CLUSTER_WIDE:
                kube("delete", each["kind"], each["metadata"]["name"], "--ignore-not-found")


def count_watched(state: Path) -> int:
    """How many containers the node agents watched, or missed, since they started."""
    counted = [json.loads(one.read_bytes()) for one in state.glob("*/status.json")]
    return sum(one.get("containers", 0) + one.get("missed", 0) for one in counted)


def have_delivered(state: Path) -> bool:
    """Whether the node agents have seen the end of all containers, and sent all that they saw."""
    counted = [json.loads(one.read_bytes()) for one in state.glob("*/status.json")]
    ended = all(one["watched"] == 0 for one in counted)
    return ended and bool(counted) and not any(state.glob("*/spool/*.batch"))


def all_watch(kube: Kube) -> bool:
    """Whether every agent in the namespace watches the Pods of its node."""
    pods = kube("get", "pods", "-l", PODS, "-o", "name").split()
    return bool(pods) and all("watching the Pods" in kube("logs", one, ok=False) for one in pods)


def read_spools(state: Path) -> Iterator[AnyEvent]:
    """What the node agents saw and have not delivered."""
    for batch in state.glob("*/spool/*.batch"):
        try:
            packed = batch.read_bytes()
        except FileNotFoundError:  # it was delivered meanwhile
            continue
        yield from from_batch(
            zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_BATCH_BYTES)
        )


def kill_node_agents(kube: Kube, server: Server) -> None:
    """Kill the agents that send to this server, and wait until Kubernetes has started others."""
    before = _count_starts(kube)
    running = map(int, filter(str.isdigit, os.listdir("/proc")))
    killed = [pid for pid in running if _is_agent(pid, server)]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert len(killed) == len(before)
    wait_until("the agents run again", lambda: _count_starts(kube) == [n + 1 for n in before])
    wait_until("the agents watch again", lambda: all_watch(kube))


def _count_starts(kube: Kube) -> list[int]:
    """How often each agent was started again."""
    found = kube.get("pods", "-l", PODS)["items"]
    statuses = [one["status"].get("containerStatuses", ()) for one in found]
    return [one["restartCount"] for each in statuses for one in each]


def _is_agent(pid: int, server: Server) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        words = (process / "cmdline").read_bytes()
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended
        return False
    address = f"CLEW_SERVER={server.address}".encode()
    return address in variables and b"\0agent\0node\0" in words


def restart_node_agents(kube: Kube) -> None:
    """Replace their Pods, as a new version of the agent would."""
    kube("delete", "pods", "-l", PODS)
    kube("rollout", "status", "daemonset/clew-node", "--timeout=180s")
    wait_until("the agents watch again", lambda: all_watch(kube))

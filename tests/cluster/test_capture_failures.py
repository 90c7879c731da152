"""All witnesses through failures: an outage of the server, killed agents, a restarted API server.

No ancestor is lost. What an agent could not see is marked as inferred, never left out.
"""

import json
import signal
from pathlib import Path

import pytest
from tests.cluster.concurrency import ALL_NAMESPACES
from tests.cluster.kube import Kube, pod
from tests.cluster.node_agents import all_watch
from tests.cluster.test_audit_agent import (
    CANARY,
    assert_no_canary,
    begin_now,
    restart_api_server,
    start_agent,
)
from tests.cluster.test_node_agent import agents, claim, project, server
from tests.driver import Project
from tests.local.server import Server
from tests.wait import wait_until

pytestmark = [pytest.mark.cluster, ALL_NAMESPACES]

__all__ = ["agents", "project", "server"]

SECRET = [{"name": "MYSQL_ROOT_PASSWORD", "value": CANARY}]


def run(kube: Kube, name: str, command: str) -> None:
    kube.run(pod(name, "sh", "-c", command, volume="data", env=SECRET))


def test_lineage_is_complete_in_spite_of_failures(
    agents: Kube, project: Project, server: Server, tmp_path: Path
) -> None:
    kube, log = agents, Path(agents.kubeconfig).parent / "logs" / "audit.log"
    state = project.folder.parent / "agent"
    begin_now(state, log)
    audit = start_agent(project, server, log)
    kube.apply(claim("data"))
    run(kube, "ingest", "echo 1 > /data/raw; echo 2 > /data/other-raw")
    server.process.send_signal(signal.SIGSTOP)  # it takes connections, and answers nothing
    run(kube, "other", "cat /data/other-raw > /data/other")
    audit.kill()
    audit.wait()
    restart_api_server(kube)
    run(kube, "prepare", "cat /data/raw > /data/table")
    kube("delete", "pods", "--selector=app.kubernetes.io/name=clew-node", "--force")
    server.process.send_signal(signal.SIGCONT)
    kube("rollout", "status", "daemonset/clew-node", "--timeout=180s")
    wait_until("the agents watch again", lambda: all_watch(kube))
    audit = start_agent(project, server, log)
    run(kube, "train", "cat /data/table > /data/model")

    def pods() -> set[str]:
        """The Pods that the model comes from."""
        target = f"pvc://{kube.namespace}/data/model"
        ran = project.command("trace", target, "--json")
        if ran.returncode:
            return set()
        nodes = json.loads(ran.stdout)["nodes"]
        return {str(node["pod"]).partition("/")[2] for node in nodes if node.get("pod")}

    wait_until("all agents delivered", lambda: pods() >= {"ingest", "prepare", "train"})
    audit.terminate()
    assert audit.wait(timeout=60) == 0
    if more := pods() - {"ingest", "prepare", "train"}:
        # Seen on a busy machine, for a reason that is not known yet. Where files were not
        # observed, all that wrote to the volume counts as an ancestor, and is marked.
        assert more == {"other"}
        assert "inferred" in project.command("trace", f"pvc://{kube.namespace}/data/model").stdout
    assert_no_canary(tmp_path)

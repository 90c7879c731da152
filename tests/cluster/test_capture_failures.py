"""All witnesses through failures: the graph is the same as without them.

The Pods of `examples/cluster` run twice, the second time with failures at fixed points: a server
that hangs and is killed, a killed audit agent, a rotated log, killed node agents, restarted node
agents, a restarted API server. The graphs differ only in one container, which runs while no agent
watches, and only by what the agents say of it. On a busy machine an agent may be late for another
container: then it says so, and only that container may differ, too.
"""

import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGSTOP
from typing import Any

import pytest
import yaml
from tests.cluster.audit_agents import (
    CANARY,
    assert_no_canary,
    await_request,
    begin_now,
    restart_api_server,
    start_agent,
    touch,
    write_load,
)
from tests.cluster.concurrency import ALONE
from tests.cluster.graph_facts import Fact, read_facts, read_lineage
from tests.cluster.kube import Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.cluster.node_agents import (
    create_token,
    have_delivered,
    kill_node_agents,
    read_spools,
    restart_node_agents,
    run_node_agents,
)
from tests.cluster.pumps import EXAMPLE, IMAGE, make_buckets, prepare_namespace
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

from clew.agents.sidecars.traffic_sidecar_names import LABEL
from clew.prov.cluster.activity_uids import object_uid
from clew.prov.cluster.watch_declarations import UNWATCHED, WATCHED, WATCHED_TO_END
from clew.prov.events import Gap, Looked, Used

pytestmark = [pytest.mark.cluster, ONE_WEBHOOK]

BUCKET = "pumps"
CLIENTS_OF_S3 = ("ingest", "train")
POLICY = '[[select]]\nnamespaces = ["{namespace}-*"]\n'
READ = """
until [ -e /data/prepared/north.csv ]; do sleep 0.1; done; cat /data/raw/north.csv
until [ -e /data/metrics.json ]; do sleep 0.1; done; cat /data/model.json
"""
"""It looks for files without opening them, so its accesses are the same at any pace."""
LOAD = "mkdir /data/load; for i in $(seq 300); do echo $i >/data/load/$i; done"
SCRIPTS = {"reader": READ, "load": LOAD}
LOST = {
    ("looked", UNWATCHED),
    ("gap", "accesses since the agent stopped"),
    ("gap", "accesses before the agent began to watch"),
}
"""What the agents say of a container that ran while none watched."""
READER = "reader/main:0"
ATTEMPTS = 3


@dataclass
class Capture:
    """All witnesses, with one server and one project."""

    agents: Kube
    """The namespace of the node agents."""
    state: Path
    """Their spools, by node."""
    log: Path
    """Of the API server."""
    project: Project
    server: Server
    webhook: Kube
    s3: dict[str, str]
    token: str
    audit: subprocess.Popen[bytes]
    """The agent that reads it."""
    stack: ExitStack

    def start_server(self) -> None:
        """Another one, at the address that the agents know."""
        host, _, port = self.server.address.rpartition("/")[2].rpartition(":")
        options = ("--host", host, "--port", port)
        self.server = self.stack.enter_context(run_server(self.project, *options))

    def start_audit_agent(self) -> None:
        self.audit = start_agent(self.project, self.server, self.log, self.token)

    def prepare(self, name: str) -> Kube:
        """A namespace with all that the workload needs."""
        kube = create_namespace(self.stack, self.agents, f"{self.agents.namespace}-{name}")
        select_namespace(kube)
        prepare_namespace(kube, self.s3, BUCKET)
        wait_for_webhook(self.webhook, kube)
        return kube

    def wait_for_look(self, kube: Kube, *names: str, kind: str) -> None:
        """Wait until the spools have what the agents declare of the containers of these Pods, or
        that an agent was late."""
        pods = {object_uid(kube.get("pod", name)["metadata"]["uid"]) for name in names}

        def is_kept() -> bool:
            return pods <= {
                one.execution
                for one in read_spools(self.state)
                if isinstance(one, Gap) or (isinstance(one, Looked) and one.kind == kind)
            }

        wait_until(f"{names} are {kind} in the spools", is_kept)

    def wait_for_read(self, kube: Kube, name: str, path: str) -> None:
        """Wait until a spool has that this Pod read a file."""
        uid = object_uid(kube.get("pod", name)["metadata"]["uid"])

        def is_kept() -> bool:
            used = (one for one in read_spools(self.state) if isinstance(one, Used))
            return any(u.execution == uid and u.version.locator.endswith(path) for u in used)

        wait_until(f"that {name} read {path} is in a spool", is_kept)

    def deliver(self, kube: Kube) -> None:
        """Wait until the graph has all that the witnesses saw."""
        kube("delete", "pods", "--all")  # then the logs of their sidecars have an end
        touch(kube, "last")
        await_request(self.project, kube.namespace, "last", self.audit)
        wait_until("the node agents delivered", lambda: have_delivered(self.state))

        def are_counted() -> bool:
            facts = read_facts(self.project, kube.namespace)
            counted = {fact[1] for fact in facts if fact[0] == "looked" and fact[2] == "accessed"}
            return {f"{name}/main:0" for name in CLIENTS_OF_S3} <= counted

        wait_until("the requests to the bucket are counted", are_counted)


def create_namespace(stack: ExitStack, cluster: Kube, name: str) -> Kube:
    cluster("create", "namespace", name)
    stack.callback(cluster, "delete", "namespace", name, "--wait=false")
    kube = Kube(cluster.kubeconfig, name)
    kube("wait", "serviceaccount/default", "--for=create", "--timeout=60s")
    return kube


@pytest.fixture(scope="module")
def capture(
    cluster: Kube, spaces: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Capture]:
    require_local_cluster(cluster)
    place = tmp_path_factory.mktemp("failures")
    folder = Path(cluster.kubeconfig).parent
    log = folder / "logs" / "audit.log"
    lifecycle.add_image(folder, IMAGE, EXAMPLE / "Containerfile")
    begin_now(place / "agent", log)
    address = address_for_pods(cluster)
    with ExitStack() as stack:
        s3 = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": f"http://{address}:"
            f"{stack.enter_context(s3_server(place / 's3', address=address))}",
        }
        project = Project(place)
        server = stack.enter_context(run_server(project, "--host", address))
        webhook = stack.enter_context(install_webhook(cluster))
        agents = create_namespace(stack, cluster, spaces)
        make_buckets(agents, s3, [BUCKET])
        token, policy = create_token(server), POLICY.format(namespace=spaces)
        state = place / "nodes"
        stack.enter_context(run_node_agents(agents, server, state, policy=policy, token=token))
        audit = start_agent(project, server, log, token)
        found = Capture(agents, state, log, project, server, webhook, s3, token, audit, stack)
        yield found
        found.audit.terminate()
        found.audit.wait(timeout=60)


def run_workload(kube: Kube) -> Iterator[str]:
    """The five Pods, one that reads what they wrote, and one that writes many files. It stops at
    points where failures can be put.

    One starts after the other: of several that start at once, the agent of a busy node may see one
    too late, which it declares."""

    def wait_for(name: str, phase: str = "Succeeded") -> None:
        kube.wait_for(f"pod/{name}", f"jsonpath={{.status.phase}}={phase}")

    yield "nothing runs"
    kube.apply(_make_pod("reader"))
    wait_for("reader", "Running")
    kube.apply(_make_pod("ingest"))
    yield "ingest runs"
    wait_for("ingest")
    for name in ("load", "prepare-north", "prepare-south"):
        kube.apply(_make_pod(name))
        wait_for(name)
    yield "prepared"
    kube.apply(_make_pod("train"))
    wait_for("train")
    yield "trained"
    kube.apply(_make_pod("evaluate"))
    yield "evaluate runs"
    wait_for("evaluate")
    wait_for("reader")


def _make_pod(name: str) -> dict[str, Any]:
    if name in SCRIPTS:
        secret = [{"name": "MYSQL_ROOT_PASSWORD", "value": CANARY}]
        made = pod(name, "sh", "-c", SCRIPTS[name], volume="data", env=secret)
    else:
        made = yaml.safe_load((EXAMPLE / f"{name}.yaml").read_text())
    if name not in CLIENTS_OF_S3:
        made["metadata"]["labels"] = {LABEL: "false"}
    return made


@pytest.fixture(scope="module")
def without_failures(capture: Capture) -> Kube:
    """The namespace where the workload ran without failures, and no agent was late."""
    for attempt in range(ATTEMPTS):
        kube = capture.prepare(f"without-{attempt}")
        for _ in run_workload(kube):
            pass
        capture.deliver(kube)
        if not list_unseen(read_facts(capture.project, kube.namespace)):
            break
    return kube


def test_without_failures_every_access_is_seen(capture: Capture, without_failures: Kube) -> None:
    facts = read_facts(capture.project, without_failures.namespace)
    assert not list_unseen(facts)
    lineage = read_lineage(capture.project, without_failures.namespace, "/metrics.json")
    ancestors = {end for edge in lineage for end in edge if end.startswith("container ")}
    names = ("ingest", "prepare-north", "train", "evaluate")
    assert ancestors == {f"container NAMESPACE/{name}" for name in names}


@ALONE
@pytest.mark.parametrize("outage", [0, pytest.param(60, marks=pytest.mark.heavy)])
def test_failures_do_not_change_the_graph(
    capture: Capture, without_failures: Kube, outage: int
) -> None:
    """`outage`: at least how many seconds the server is away."""
    kube = capture.prepare(f"with-{outage}")
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        load = pool.submit(lambda: None)
        for point in run_workload(kube):
            match point:
                case "nothing runs":
                    capture.server.process.send_signal(SIGSTOP)  # it accepts, and never answers
                    load = pool.submit(write_load, capture.agents, capture.log, seconds=0)
                case "ingest runs":
                    capture.audit.kill()
                    capture.audit.wait()
                case "prepared":
                    ended = ("ingest", "load", "prepare-north", "prepare-south")
                    capture.wait_for_look(kube, *ended, kind=WATCHED_TO_END)
                    capture.wait_for_read(kube, "reader", "/raw/north.csv")
                    kill_node_agents(capture.agents, capture.server)
                    load.result()  # the log is rotated
                case "trained":
                    capture.wait_for_look(kube, "train", kind=WATCHED_TO_END)
                    restart_node_agents(capture.agents)
                case "evaluate runs":
                    capture.wait_for_look(kube, "evaluate", kind=WATCHED)
                    restart_api_server(kube)
    capture.start_audit_agent()
    while time.monotonic() < began + outage:
        write_load(capture.agents, capture.log, seconds=began + outage - time.monotonic())
    capture.server.process.kill()
    capture.server.process.wait()
    capture.start_server()
    capture.deliver(kube)
    assert_same(capture, without_failures, kube)
    assert_no_canary(capture.state.parent)


def list_unseen(facts: Iterable[Fact]) -> set[str]:
    """The containers of which the agents say that they did not see everything."""
    return {fact[1] for fact in facts if fact[0] == "gap" or fact[2] == UNWATCHED}


def assert_same(capture: Capture, one: Kube, other: Kube) -> None:
    without, found = (read_facts(capture.project, kube.namespace) for kube in (one, other))
    missing, more = without - found, found - without
    unseen = list_unseen(found)
    assert {fact[1] for fact in [*missing, *more]} == unseen, (missing, more)
    assert READER in unseen
    assert {fact[::2][:2] for fact in missing if fact[1] == READER} == {("looked", WATCHED_TO_END)}
    assert {fact[::2][:2] for fact in more if fact[1] == READER} == LOST
    if unseen == {READER}:
        lineages = [
            read_lineage(capture.project, kube.namespace, "/metrics.json") for kube in (one, other)
        ]
        assert lineages[0] == lineages[1]

"""Agents on two real nodes measure locations at different distances, and Pods follow."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.cluster.concurrency import ALL_NAMESPACES
from tests.cluster.deployment import DEPLOY, find_resource, render
from tests.cluster.kube import CLEW, Kube, pod
from tests.cluster.location import require_local_cluster
from tests.cluster.operator import free_port
from tests.cluster.pipeline_lake import lake_for_pods
from tests.cluster.schedulers import Extender, KubeScheduler, write_configuration
from tests.driver import Project
from tests.network_path import PORT, NetworkPath
from tests.prometheus import prometheus
from tests.wait import wait_until

from clew.placement.measurement.default_locations import choose_own_locations

pytestmark = [pytest.mark.cluster, ALL_NAMESPACES]

NAMESPACE = "clew-scheduler"
DASHBOARD = DEPLOY / "agents" / "latency" / "dashboard.json"
AGENT = "app.kubernetes.io/name=clew-latency"
LOCATIONS = {name: f"10.99.0.{n}" for n, name in enumerate("ABCDEFGHIJKL", 2)}
"""More than a node measures of its own accord, so some are predicted."""
SCHEDULER = "measured"
PIPELINE = f"""
import clew
from kfp import dsl

@dsl.component(base_image="{CLEW}", install_kfp_package=False)
def answer(question: str) -> str:
    return question

@dsl.pipeline
def questions():
    clew.place(answer(question="Which pump fails next?"), near="LOCATION")
"""
LATENCY_KINDS = ("Namespace", "CustomResourceDefinition", "ConfigMap")


class Site(NamedTuple):
    """A node, the Pod of its agent, and the network of that Pod."""

    node: str
    agent: str
    path: NetworkPath


class Sites(NamedTuple):
    near: Site
    far: Site
    home: str
    """A location that is near to the one site, and `edge` to the other."""
    edge: str
    kube: Kube
    extender: Extender

    def knows(self, site: Site, location: str) -> bool:
        """Whether a node measures a location."""
        return self.latency(site, location) is not None

    def latency(self, site: Site, location: str) -> float | None:
        found = self.kube.get("nodelatency", site.node).get("status", {})
        return next((it["ms"] for it in found.get("locations", ()) if it["name"] == location), None)


@pytest.fixture(scope="module")
def sites(cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    require_local_cluster(cluster)
    kube = Kube(cluster.kubeconfig, NAMESPACE)
    folder = tmp_path_factory.mktemp("measured")
    locations = folder / "locations"
    locations.mkdir()
    for number, (name, address) in enumerate(LOCATIONS.items()):
        (locations / name).write_text(address if number % 2 else f"{address}:{PORT}")
    manifests = list_manifests(kube, locations)
    kube("wait", f"namespace/{NAMESPACE}", "--for=delete", "--timeout=180s")
    with contextlib.ExitStack() as ending:
        ending.callback(remove, kube, manifests)
        for each in manifests:  # the namespace and the definition come first
            kube.apply(each)
        crd = "crd/nodelatencies.latency.clew.dev"
        kube("wait", crd, "--for=condition=Established", "--timeout=60s")
        kube("rollout", "status", "daemonset/clew-latency", "--timeout=180s")
        near, far = (make_site(kube, agent, ending) for agent in list_agents(kube)[:2])
        for number, name in enumerate(LOCATIONS):
            near.path.set_distance(LOCATIONS[name], 10 + number)
            far.path.set_distance(LOCATIONS[name], 40 - 2 * number)
        # Both nodes measure these two of their own accord.
        of_near, of_far = (choose_own_locations(site.node, LOCATIONS) for site in (near, far))
        home, edge, *_ = sorted(of_near & of_far)
        near.path.set_distance(LOCATIONS[edge], 40)
        far.path.set_distance(LOCATIONS[edge], 10)
        near.path.set_distance(LOCATIONS[home], 10)
        far.path.set_distance(LOCATIONS[home], 40)
        config = Path(cluster.kubeconfig)
        port = free_port()
        extender = Extender(folder, config, port, "--locations", str(locations))
        ending.callback(extender.end)
        scheduler = KubeScheduler(folder, write_configuration(folder, config, port, name=SCHEDULER))
        ending.callback(scheduler.end)
        yield Sites(near, far, home, edge, kube, extender)


def list_manifests(kube: Kube, locations: Path) -> list[dict[str, Any]]:
    """The agents, and what they need of the scheduler's manifests."""
    found = [each for each in render(kube, "scheduler") if each["kind"] in LATENCY_KINDS]
    found += render(kube, "agents/latency")
    data = {each.name: each.read_text() for each in locations.iterdir()}
    find_resource(found, "ConfigMap", "clew-locations")["data"] = data
    daemons = find_resource(found, "DaemonSet", "clew-latency")
    (container,) = daemons["spec"]["template"]["spec"]["containers"]
    container["args"].append("--interval=5")
    order = ("Namespace", "CustomResourceDefinition")
    return sorted(found, key=lambda each: each["kind"] not in order)


def remove(kube: Kube, manifests: list[dict[str, Any]]) -> None:
    """The definition takes the NodeLatencies with it."""
    for each in manifests:
        kind, about = each["kind"], each["metadata"]
        # kustomize gives admission policies a namespace, which Kubernetes ignores
        if about.get("namespace") is None or kind.startswith("ValidatingAdmission"):
            kube("delete", kind, about["name"], "--ignore-not-found", "--wait=false")


def list_agents(kube: Kube) -> list[str]:
    return kube("get", "pods", "-l", AGENT, "-o", "name").split()


def make_site(kube: Kube, agent: str, ending: contextlib.ExitStack) -> Site:
    node = kube.get(agent)["spec"]["nodeName"]
    uid = kube.get(agent)["metadata"]["uid"]
    process = wait_until(f"the agent of {node} runs", lambda: find_process(uid))
    assert process is not None
    return Site(node, agent, ending.enter_context(NetworkPath(beside=process)))


def find_process(uid: str) -> int | None:
    """A process of a Pod on this machine, by the name of its cgroup."""
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if uid in (one / "cgroup").read_text() and b"latency" in (one / "cmdline").read_bytes():
                return int(one.name)
    return None


def place(kube: Kube, name: str, location: str) -> str:
    """Where a Pod near a location is put."""
    asked = pod(name, "sleep", "3600")
    asked["metadata"]["labels"] |= {"typeOfComponent": "Predict", "OurLocation": location}
    asked["spec"] |= {"schedulerName": SCHEDULER}
    kube.apply(asked)
    kube.wait_for(f"pod/{name}", "jsonpath={.spec.nodeName}")
    return str(kube.get(f"pod/{name}")["spec"]["nodeName"])


def test_pods_run_near_their_users_and_follow_when_latencies_change(
    sites: Sites, kube: Kube
) -> None:
    names = iter(f"pod-{n}" for n in range(1000))

    def goes_to(site: Site, location: str) -> bool:
        return place(kube, next(names), location) == site.node

    wait_until("Pods are near HOME", lambda: goes_to(sites.near, sites.home))
    wait_until("Pods are near EDGE", lambda: goes_to(sites.far, sites.edge))
    measured = wait_until("HOME is measured", lambda: sites.latency(sites.near, sites.home))
    assert measured is not None
    assert measured >= 10
    sites.near.path.set_distance(LOCATIONS[sites.home], 120)
    wait_until("decisions follow", lambda: goes_to(sites.far, sites.home))


def test_the_record_of_a_task_says_why_it_ran_on_its_node(
    sites: Sites, kube: Kube, tmp_path: Path
) -> None:
    wait_until("the location is measured", lambda: sites.knows(sites.far, sites.edge))
    (tmp_path / "lake").mkdir()
    with lake_for_pods(tmp_path / "lake", kube) as lake:
        lake.admit(kube)
        project = Project(
            tmp_path / "project",
            KUBECONFIG=kube.kubeconfig,
            CLEW_ARTIFACTS="s3://lake/runs",
            CLEW_IMAGE=CLEW,
            CLEW_SCHEDULER=SCHEDULER,
            **lake.environment,
        )
        project.write("pipeline.py", PIPELINE.replace("LOCATION", sites.edge))
        where = ("--on", "kubernetes", "--namespace", kube.namespace)
        project("pipeline", "run", "pipeline.py", *where)
    found = project.json("pipeline", "why", "r1/answer")
    assert f"on {found['node']}, " in found["placement"]
    assert f" ms from {sites.edge}: the best of " in found["placement"]
    assert found["placement"] in project("pipeline", "show", "r1").stdout


def test_a_location_that_does_not_answer_has_no_latency(sites: Sites) -> None:
    wait_until("it is known", lambda: sites.knows(sites.near, sites.edge))
    sites.near.path.set_distance(LOCATIONS[sites.edge], None)
    lost = "clew_scheduler_unreachable_pairs"
    wait_until("it is unreachable", lambda: sites.extender.metrics()[lost] >= 1)
    assert not sites.knows(sites.near, sites.edge)
    sites.near.path.set_distance(LOCATIONS[sites.edge], 40)
    wait_until("it answers again", lambda: sites.extender.metrics()[lost] == 0)


@contextlib.contextmanager
def enter_latencies(sites: Sites) -> Iterator[None]:
    """Labels for the pairs that nobody was asked to measure: predictions are compared with them."""
    node = sites.far.node
    missing = [name for name in LOCATIONS if not sites.knows(sites.far, name)]
    for name in missing:
        sites.kube("label", "node", node, f"{name}=25")
    try:
        yield
    finally:
        for name in missing:
            sites.kube("label", "node", node, f"{name}-")


def test_every_query_of_the_dashboard_finds_data(sites: Sites, kube: Kube, tmp_path: Path) -> None:
    agents = [sites.kube.get(site.agent)["status"]["podIP"] for site in (sites.near, sites.far)]
    targets = [sites.extender.url.removeprefix("http://"), *(f"{ip}:8890" for ip in agents)]
    queries = [
        target["expr"].replace("$__rate_interval", "1m")
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel.get("targets", ())
    ]
    fits = 'clew_scheduler_fits_total{result="ok"}'
    wait_until("something is predicted", lambda: sites.extender.metrics().get(fits))
    with prometheus(targets, tmp_path) as address, httpx2.Client(base_url=address) as client:

        def find(query: str) -> bool:
            answer = client.get("/api/v1/query", params={"query": query}).json()
            assert answer["status"] == "success", f"{query}: {answer}"
            return bool(answer["data"]["result"])  # NaN: nothing was observed in that hour

        numbers = iter(range(1000))

        def all_found() -> bool:
            """Latencies and Pods go on changing, so that rates are not empty."""
            number = next(numbers)
            place(kube, f"asks-{number}", sites.home)
            sites.near.path.set_distance(LOCATIONS[sites.home], 10 + 50 * (number % 2))
            missing[:] = [query for query in queries if not find(query)]
            return not missing

        missing: list[str] = []
        try:
            wait_until("it is scraped", lambda: find("clew_scheduler_nodes"))
            with enter_latencies(sites):
                wait_until("every query finds data", all_found)
        except AssertionError:
            raise AssertionError(f"no data: {missing}") from None


def test_an_agent_writes_what_its_own_node_found_and_nothing_else(
    sites: Sites, tmp_path: Path
) -> None:
    pod_name = sites.near.agent.removeprefix("pod/")
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod_name}")
    config = json.loads(sites.kube("config", "view", "--raw", "--flatten", "--output=json"))
    token = sites.kube("create", "token", "clew-latency", *bound).strip()
    config["users"][0]["user"] = {"token": token}  # a certificate would count instead
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    account = Kube(str(tmp_path / "kubeconfig"), NAMESPACE)

    def patch(node: str, body: str, *words: str) -> str:
        change = ("patch", "nodelatency", node, "--type=merge", f"--patch={body}", *words)
        try:
            return account(*change)
        except AssertionError as refused:
            return str(refused)

    status = '{"status": {"unreachable": []}}'
    assert "patched" in patch(sites.near.node, status, "--subresource=status")
    refused = patch(sites.far.node, status, "--subresource=status")
    assert "an agent may report the latencies of its own node only" in refused
    assert "cannot patch" in patch(sites.near.node, '{"spec": {"locations": ["X"]}}')
    wrong = '{"status": {"locations": [{"name": "HOME", "ms": -1, "at": "2026-01-01T00:00:00Z"}]}}'
    assert "should be greater than" in patch(sites.near.node, wrong, "--subresource=status")

"""What the policy of the node agents selects by, on real containers: one Pod that a condition
holds for and one that it does not hold for."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.graph_facts import Fact, read_facts
from tests.cluster.kube import CLEW, Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.cluster.node_agents import (
    count_watched,
    create_token,
    have_delivered,
    run_node_agents,
)
from tests.cluster.test_node_agent import claim
from tests.driver import Project
from tests.local.server import run_server
from tests.wait import wait_until

from clew.prov.cluster.watch_declarations import UNWATCHED, WATCHED

pytestmark = pytest.mark.cluster

CONDITIONS = {
    "uid": "uids = [1000]",  # the user of the image
    "gid": "gids = [4322]",
    "address": "addresses = {networks}",
    "context": 'contexts = ["privileged"]',
    "cgroup": 'cgroups = ["*besteffort*"]',
    "label": 'labels = {{ team = "vision" }}',
    "container": 'containers = ["chosen"]',
    "volume": 'volumes = ["emptyDir"]',
    "path": 'paths = ["/kept/**"]',
    "name": 'pods = ["name-yes"]',
}
WATCHED_PODS = {f"{one}-yes" for one in CONDITIONS} | {"path-no"}
"""Which of the two of `path` are recorded is decided file by file."""
SCRIPT = """
until [ -e /data/go ] || [ $NAME = volume-yes ]; do sleep 0.1; done
sleep 1; mkdir -p -m 777 /data/kept /data/left
echo x > /data/kept/$NAME; echo x > /data/left/$NAME
"""
"""It waits until the agents watch all that are selected: on a busy machine they are late. The one
without the shared volume cannot."""
LOOKS = (WATCHED, UNWATCHED)


def policy(namespace: str, networks: list[str]) -> str:
    rules = []
    for name, condition in CONDITIONS.items():
        known = condition.format(networks=json.dumps(networks))
        rules.append(known if name == "name" else f'pods = ["{name}-*"]\n{known}')
    rules.append('pods = ["elsewhere"]\naddresses = ["192.0.2.0/24"]')
    return "\n".join(f'[[select]]\nnamespaces = ["{namespace}"]\n{rule}' for rule in rules)


def made(name: str, **more: Any) -> dict[str, Any]:
    variables = [{"name": "NAME", "value": name}]
    return pod(name, "sh", "-c", SCRIPT, volume="data", env=variables, **more)


def pods() -> list[dict[str, Any]]:
    """Those that are watched end in `yes`."""
    found = {name: made(name) for one in CONDITIONS for name in (f"{one}-yes", f"{one}-no")}
    main = {name: one["spec"]["containers"][0] for name, one in found.items()}
    main["uid-yes"]["image"] = CLEW
    main["gid-yes"]["securityContext"] = {"runAsGroup": 4322}
    main["context-yes"]["securityContext"] = {"privileged": True}
    main["cgroup-no"]["resources"] = {"requests": {"memory": "10Mi"}}
    found["label-yes"]["metadata"]["labels"]["team"] = "vision"
    found["label-no"]["metadata"]["labels"]["team"] = "sound"
    main["container-yes"]["name"] = "chosen"
    found["volume-yes"]["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    main["path-no"]["command"][-1] = SCRIPT.replace("kept", "other")
    del found["address-no"]
    return [*found.values(), made("elsewhere")]


def test_every_condition_selects_containers_before_they_start(kube: Kube, tmp_path: Path) -> None:
    require_local_cluster(kube)
    kube.run(pod("probe", "true"))
    network = f"{kube.get('pod', 'probe')['status']['podIP']}/16"
    project, state = Project(tmp_path), tmp_path / "state"
    kube.apply(claim("data"))
    with run_server(project, "--host", address_for_pods(kube)) as server:
        rules, token = policy(kube.namespace, [network]), create_token(server)
        with run_node_agents(kube, server, state, policy=rules, token=token):
            asked = pods()
            kube.apply(*asked)
            wait_until("all are watched", lambda: count_watched(state) >= len(WATCHED_PODS))
            kube.run(pod("go", "touch", "/data/go", volume="data"))
            for one in asked:
                kube.wait_for(
                    f"pod/{one['metadata']['name']}", "jsonpath={.status.phase}=Succeeded"
                )
            wait_until("delivered", lambda: have_delivered(state))
    facts = read_facts(project, kube.namespace)
    watched = {_pod_of(fact) for fact in facts if fact[0] == "looked" and fact[2] in LOOKS}
    assert watched == WATCHED_PODS
    written: dict[str, set[str]] = {}
    for fact in facts:
        if fact[0] == "generated" and "@" in fact[-1]:
            path = fact[-1].partition("@VOLUME")[2].partition(" ")[0]
            written.setdefault(_pod_of(fact), set()).add(path)
    assert written["path-yes"] == {"/kept/path-yes"}
    assert "path-no" not in written
    assert written["uid-yes"] == {"/kept/uid-yes", "/left/uid-yes"}


def _pod_of(fact: Fact) -> str:
    return fact[1].partition("/")[0]

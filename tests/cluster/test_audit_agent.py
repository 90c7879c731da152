"""The audit agent on a real API server: what it records, and that no failure changes the result."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.cluster.audit_agents import (
    Recorded,
    assert_no_canary,
    await_request,
    begin_now,
    inputs,
    make_token,
    read_log,
    restart_api_server,
    start_agent,
    state_of,
    touch,
    trainer,
    write_load,
)
from tests.cluster.concurrency import ALL_NAMESPACES
from tests.cluster.deployment import find_resource, render
from tests.cluster.kube import Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.driver import Project
from tests.local.server import run_server
from tests.wait import wait_until

from clew.documents.document import from_nanoseconds

pytestmark = pytest.mark.cluster


@pytest.fixture
def log(kube: Kube) -> Path:
    """The audit log of the API server, which runs on this machine."""
    require_local_cluster(kube)
    return Path(kube.kubeconfig).parent / "logs" / "audit.log"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_pod_with_everything_it_depends_on(kube: Kube, log: Path, project: Project) -> None:
    namespace = kube.namespace
    begin_now(Path(state_of(project)), log)
    inputs(kube)
    kube.run(trainer("train"))
    kube("patch", "configmap", "settings", "--patch", '{"data":{"rate":"0.2"}}')
    kube.apply(pod("stays", "sleep", "3600"))
    kube.wait_for("pod/stays", "condition=Ready")
    kube("exec", "stays", "--", "true")
    address = kube.get("pod", "stays")["status"]["podIP"]
    (status,) = kube.get("pod", "train")["status"]["containerStatuses"]
    uid = kube.get("pod", "train")["metadata"]["uid"].replace("-", "")
    read_log(project, log)
    with Recorded(project, namespace) as found:
        train = next(one for one in found.begun("pod") if one["name"] == f"{namespace}/train")
        (container,) = [one for one in found.begun("container") if one["uid"].startswith(uid)]
        requests = [one["facets"]["kubernetes"] for one in found.begun("request")]
        (claim,) = found.begun("claim")
        used, made, aliases = found.places("used"), found.places("generated"), found.aliases()

    assert train["uid"] == uid
    assert train["node"] == kube.get("pod", "train")["spec"]["nodeName"]
    assert train["agent"]
    assert container["uid"] == f"{uid}/{status['containerID'].partition('://')[2]}"
    assert json.loads(container["command"])[0] == "sh"
    digest = status["imageID"].rpartition("@")[2]
    assert {f"image://{digest}", f"configmap://{namespace}/settings"} <= used
    assert {f"secret://{namespace}/password", f"pvc://{namespace}/data"} <= used
    assert {f"pvc://{namespace}/data", f"configmap://{namespace}/settings"} <= made
    assert f"pod://{namespace}/stays" in made, "it was touched by hand"
    assert {(one["verb"], one["resource"]) for one in requests} >= {
        ("create", "configmaps"),
        ("patch", "configmaps"),
        ("create", "secrets"),
    }
    assert claim["facets"]["kubernetes"]["backing"]["driver"]
    volume = claim["facets"]["kubernetes"]["volume"]
    assert (f"pvc://{namespace}/data", f"pvc://{namespace}/data@{volume}") in aliases
    assert f"ip://{address}" in {a for a, _ in aliases}
    assert_no_canary(project.folder.parent)


def test_rollout_and_service(kube: Kube, log: Path, project: Project) -> None:
    namespace = kube.namespace
    begin_now(Path(state_of(project)), log)
    labels = {"app": "web"}
    template = pod("web", "sleep", "3600")
    template["spec"].pop("restartPolicy")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    kube.apply(deployment, service | {"spec": {"selector": labels, "ports": [{"port": 80}]}})
    kube("rollout", "status", "deployment/web", "--timeout=180s")
    (old,) = _pod_names(kube)
    kube("set", "env", "deployment/web", "A=1")
    kube("rollout", "status", "deployment/web", "--timeout=180s")
    (new,) = _pod_names(kube) - {old}

    def is_recorded() -> bool:
        read_log(project, log)
        with Recorded(project, namespace) as found:
            leads = {b for a, b in found.aliases() if a == f"service://{namespace}/web"}
            return len(leads) == 2 and found.times(old)[1] is not None

    wait_until("the Service leads to the new Pod, and the old one is gone", is_recorded)
    with Recorded(project, namespace) as found:
        kinds = [one["facets"]["kubernetes"] for one in found.begun("controller")]
        pods, (began, ended) = found.begun("pod"), found.times(old)
    assert ended is not None
    assert old in _existing(project, namespace, "Pod", began + 1000)
    assert _existing(project, namespace, "Pod", ended + 1000) == [new]
    assert _existing(project, namespace, "Deployment", ended + 1000) == ["web"]
    now = project.json("cluster", "--namespace", namespace)["objects"]
    assert [one["pods"] for one in now if one["kind"] == "Service"] == [[new]]
    sets = [one for one in kinds if one["kind"] == "ReplicaSet"]
    assert {one["owner"]["name"] for one in sets} == {"web"}
    assert {one["revision"] for one in sets} == {"1", "2"}
    owners = {one["facets"]["kubernetes"]["owner"]["name"] for one in pods}
    assert owners == {one["name"] for one in sets}, "the old Pod and the one that replaced it"


def _existing(project: Project, namespace: str, kind: str, at: int) -> list[str]:
    """What existed at a time, which is a whole number of microseconds."""
    as_of = from_nanoseconds(at).isoformat()
    objects = project.json("cluster", "--as-of", as_of, "--namespace", namespace)["objects"]
    return [one["name"] for one in objects if one["kind"] == kind]


def _pod_names(kube: Kube) -> set[str]:
    return {one["metadata"]["name"] for one in kube.get("pods", "--selector=app=web")["items"]}


def test_client_cannot_pose_as_a_pod(kube: Kube, log: Path, project: Project) -> None:
    """The API server takes over the auditID that a client sends."""
    begin_now(Path(state_of(project)), log)
    kube.run(pod("victim", "true"))
    uid = kube.get("pod", "victim")["metadata"]["uid"]
    config = json.loads(kube("config", "view", "--raw", "--flatten", "--output=json"))
    made = {"metadata": {"name": "forged"}, "data": {"a": "1"}}
    with _proxy(kube) as address:
        path = f"{address}/api/v1/namespaces/{kube.namespace}/configmaps"
        with httpx2.Client(verify=False) as client:
            sent = client.post(path, json=made, headers={"Audit-ID": uid})
    assert sent.status_code == 201, config["current-context"]
    assert sent.headers["Audit-Id"] == uid
    read_log(project, log)
    with Recorded(project, kube.namespace) as found:
        kinds = {one["uid"]: "pod" for one in found.begun("pod")}
        requests = [one["uid"] for one in found.begun("request")]
    assert kinds == {uid.replace("-", ""): "pod"}
    assert len(requests) == 1
    assert uid.replace("-", "") not in requests


def test_manifests_run_the_agent(
    kube: Kube, log: Path, project: Project, nodes: list[str], tmp_path: Path
) -> None:
    """As root without any capability, with the log read-only and no access to the API."""
    begin_now(tmp_path / "audit-state", log)
    found = [each for each in render(kube, "agents/audit") if each["kind"] != "Namespace"]
    spec = find_resource(found, "DaemonSet", "clew-audit")["spec"]["template"]["spec"]
    spec["nodeSelector"] = {"kubernetes.io/hostname": nodes[0]}
    paths = {"log": str(log.parent), "state": str(tmp_path / "audit-state")}
    for volume in spec["volumes"]:
        if volume["name"] in paths:
            volume["hostPath"]["path"] = paths[volume["name"]]
    with run_server(project, "--host", address_for_pods(kube)) as server:
        given = {"server": server.address, "token": make_token(server)}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "clew-agents"}}
        for each in found:
            each["metadata"]["namespace"] = kube.namespace
        kube.apply(secret | {"stringData": given}, *found)
        kube("rollout", "status", "daemonset/clew-audit", "--timeout=180s")
        kube.run(pod("seen", "true"))

        def is_recorded() -> bool:
            with Recorded(project, kube.namespace) as recorded:
                return f"{kube.namespace}/seen" in {one["name"] for one in recorded.begun("pod")}

        wait_until("the Pod is in the graph", is_recorded)
        kube("delete", "daemonset", "clew-audit")


@contextmanager
def _proxy(kube: Kube) -> Iterator[str]:
    """The API server without TLS, as kubectl's user."""
    from tools.cluster.binaries import search_path

    environment = {"PATH": f"{search_path()}:{os.environ['PATH']}", "KUBECONFIG": kube.kubeconfig}
    with subprocess.Popen(
        ["kubectl", "proxy", "--port=0"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://{process.stdout.readline().rpartition(' ')[2].strip()}"
        process.terminate()


@ALL_NAMESPACES
@pytest.mark.parametrize("outage", [3, pytest.param(60, marks=pytest.mark.heavy)])
def test_failures_do_not_change_the_graph(
    kube: Kube, log: Path, project: Project, tmp_path: Path, outage: int
) -> None:
    """An outage of the server under load, a kill of the agent, a rotation of the log
    and a restart of the API server; then the same log is read again with none of them."""
    made = project.folder.parent / "again" / "project"
    made.mkdir(parents=True)
    _copy_project(project.folder, made)
    begin_now(Path(state_of(project)), log)
    begin_now(tmp_path / "again" / "agent", log)
    inputs(kube)
    with run_server(project) as first:
        agent = start_agent(project, first, log)
        kube.run(trainer("train-1"))
        agent.kill()  # in the middle of its work
        agent.wait()
        agent = start_agent(project, first, log)
        port = first.address.rpartition(":")[2]
        kube("patch", "configmap", "settings", "--patch", '{"data":{"rate":"0.2"}}')
    write_load(kube, log, seconds=outage)
    restart_api_server(kube)
    with run_server(project, "--port", port) as second:
        assert second.address == first.address
        kube.run(trainer("train-2"))
        touch(kube, "last")
        await_request(project, kube.namespace, "last", agent)
    agent.terminate()
    assert agent.wait(timeout=60) == 0
    other = Project.__new__(Project)
    other.folder, other.environment = made, project.environment
    read_log(other, log)
    with Recorded(project, kube.namespace) as one, Recorded(other, kube.namespace) as two:
        with_failures, without = one.rows(), two.rows()
    assert {table: len(rows) for table, rows in with_failures.items()} == {
        table: len(rows) for table, rows in without.items()
    }
    assert with_failures == without
    assert len(without["started"]) >= 10
    assert_no_canary(tmp_path)


def _copy_project(one: Path, other: Path) -> None:
    """A project with the same uid, so that its rows have the same keys."""
    subprocess.run(["cp", "-r", one / ".clew", other], check=True)

"""The server on a cluster: two of it lead to what runs there, and say what is idle."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from tests.cluster.deployment import (
    find_resource,
    forward_port,
    install,
    relay_socket,
    render,
    server_token,
)
from tests.cluster.jupyter import assert_idle_deleted, jupyter_notebook
from tests.cluster.kube import Kube
from tests.cluster.location import address_for_pods
from tests.cluster.operator import claim, notebook, volume
from tests.cluster.test_viewers import viewer
from tests.local.test_server_websockets import execute
from tests.wait import wait_until
from websockets.sync.client import ClientConnection, connect

pytestmark = pytest.mark.cluster

PVC = "persistentVolumeClaim"
REWRITE = "notebooks.kubeflow.org/http-rewrite-uri"


@pytest.fixture
def _shared(kube: Kube) -> Iterator[None]:
    """A volume that every node can have."""
    with volume(kube, "clew", "clew-servers", access="ReadWriteMany") as folder:
        folder.chmod(0o777)
        yield


@pytest.fixture
def clew(kube: Kube, _shared: None, postgres_server: str) -> Iterator[Kube]:
    """Everything, with two servers where one was; the operator looks at the test's own namespace
    alone, and every second for what is idle."""
    found = render(kube, "overlays/replicas")
    find_resource(found, "PersistentVolumeClaim", "clew-servers")["spec"]["storageClassName"] = ""
    operator = find_resource(found, "Deployment", "clew-operator")["spec"]["template"]["spec"]
    operator["containers"][0]["args"] += [f"--namespace={kube.namespace}"]
    culling = {"ENABLE_CULLING": "true", "CULL_IDLE_TIME": "720", "IDLENESS_CHECK_PERIOD": "0.02"}
    found.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "clew-culling", "namespace": "clew"},
            "data": culling,
        }
    )
    host = address_for_pods(kube)
    with relay_socket(f"{postgres_server}/.s.PGSQL.5432", host) as port:
        url = f"postgresql://clew@{host}:{port}/postgres"
        found.append(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "clew-graph", "namespace": "clew"},
                "stringData": {"url": url},
            }
        )
        single = render(kube)
        single.remove(find_resource(single, "Deployment", "clew-operator"))
        with install(kube, single) as clew:
            clew("rollout", "status", "deployment/clew-server", "--timeout=180s")
            clew.apply(*found)
            for name in ("clew-server", "clew-operator"):
                clew("rollout", "status", f"deployment/{name}", "--timeout=180s")
            yield clew


def servers(clew: Kube) -> list[str]:
    pods = clew.get("pods", "--selector=app.kubernetes.io/name=clew-server")["items"]
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def claims(clew: Kube, pod: str) -> list[str]:
    volumes = clew.get("pod", pod)["spec"]["volumes"]
    return [one[PVC]["claimName"] for one in volumes if PVC in one]


def page() -> dict[str, Any]:
    """A notebook that knows no prefix."""
    says = "mkdir /tmp/www && echo here > /tmp/www/index.html && exec httpd -f -p 8888 -h /tmp/www"
    return notebook("first", "sh", "-c", says, annotations={REWRITE: "/"})


def test_two_servers_lead_there_and_one_is_enough(kube: Kube, clew: Kube) -> None:
    kube.apply(page(), jupyter_notebook("lab"), *(claim(each) for each in ("used", "idle")))
    chosen = viewer("used", "used", networking={"basePrefix": "/files"})
    kube.apply(chosen, viewer("idle", "idle"))
    kube("create", "service", "clusterip", "other", "--tcp=80:8888")
    for what in ("notebook/first", "notebook/lab", "pvcviewer/used", "pvcviewer/idle"):
        kube.wait_for(what, "condition=Ready")
    one, other = servers(clew)
    assert claims(clew, one) == claims(clew, other) == ["clew-servers"]
    assert clew.get("pvc", "clew-server")["status"]["phase"] == "Bound", "the single one's is kept"
    who = {"Authorization": f"Bearer {server_token(clew)}"}
    place = f"/notebook/{kube.namespace}/first/"
    browser = kube.get("pvcviewer", "used")["status"]["url"]
    assert browser == f"/files/{kube.namespace}/used/"
    with ExitStack() as stack:
        ways, apis = (
            [stack.enter_context(forward_port(clew, f"pod/{pod}", port)) for pod in (one, other)]
            for port in (8101, 8100)
        )
        first, second = (httpx2.Client(base_url=way, headers=who) for way in ways)
        api, other_api = (httpx2.Client(base_url=way, headers=who) for way in apis)
        for each in (api, other_api):
            stack.enter_context(each)
            assert each.get(place).status_code == 303
            told = each.get("/api/v1/backend").json()["features"]["culling"]
            assert told == {"enabled": True, "idle_minutes": 720}
        the_same_request_to_both_creates_one(kube, api, other_api)
        for each in (first, second):
            stack.enter_context(each)
            assert each.get(place).text == "here\n"
            assert httpx2.get(f"{each.base_url}{place}").status_code == 401
            for nobody in (
                "notebook/{}/other/",
                "notebook/{}/absent/",
                "tensorboard/{}/first/",
                "other/{}/used/",
            ):
                assert each.get(f"/{nobody.format(kube.namespace)}").status_code == 404
        written = b"learning rate: 0.1\n" * 100_000
        assert first.put(f"{browser}files/notes.txt", content=written).is_success
        assert second.get(f"{browser}files/notes.txt").content == written

        def passed() -> bool:
            """Both know what passed through either."""
            return all(requests(each, kube, "notebook", "first") == 2 for each in (api, other_api))

        wait_until("they share their records", passed)
        kernel = started(first, kube)
        with channels(ways[0], who, kernel) as socket:
            execute(socket, "x = 6")
        clew("delete", "pod", one, "--force", "--grace-period=0")
        with channels(ways[1], who, kernel) as socket:
            assert execute(socket, "print(x * 7)") == "42\n"
        for _ in range(200):
            assert second.get(place).text == "here\n"

        assert second.get(f"{browser}files/").is_success
        wait_until("its use is known", lambda: requests(other_api, kube, "pvcviewer", "used") == 3)
        assert_idle_deleted(kube, second, "pvcviewer", "files")
    assert kube.get("pvc", "used")["status"]["phase"] == "Bound"


def the_same_request_to_both_creates_one(
    kube: Kube, one: httpx2.Client, other: httpx2.Client
) -> None:
    """With the rights of their own account: a notebook, a volume, a viewer and a TensorBoard."""
    space, names = kube.namespace, {}
    volume = {"mode": "ReadWriteOnce", "class": "{empty}", "size": "10Mi", "type": "empty"}
    for path, name, form in (
        (f"/volumes/api/namespaces/{space}/pvcs", "app-data", volume),
        (f"/volumes/api/namespaces/{space}/viewers", "app-data", {}),
        (f"/tensorboards/api/namespaces/{space}/tensorboards", "app-board", {"logspath": "s3://b"}),
        (
            f"/jupyter/api/namespaces/{space}/notebooks",
            "app",
            {"customImage": "registry.invalid/x"},
        ),
    ):
        for each in (one, other):
            body = {"name": name, **form}
            made = each.post(path, json=body, headers={"Idempotency-Key": "only-once"})
            assert made.status_code == 200, made.text
        names[path] = name
    for path, name in reversed(names.items()):
        deleted = other.delete(f"{path}/{name}")
        assert deleted.status_code == 200 or "used by" in deleted.text, deleted.text


def started(server: httpx2.Client, kube: Kube) -> str:
    """A kernel, by its address."""
    place = f"/notebook/{kube.namespace}/lab/api/kernels"
    proof = {"X-XSRFToken": "beef", "Cookie": "_xsrf=beef"}  # no foreign page asks
    made = server.post(place, json={"name": "python3"}, headers=proof, timeout=60)
    assert made.is_success, made.text
    return f"{place}/{made.json()['id']}"


def channels(way: str, who: dict[str, str], kernel: str) -> ClientConnection:
    address = f"{way.replace('http:', 'ws:')}{kernel}/channels?session_id=here"
    return connect(address, additional_headers=who, max_size=None)


def requests(server: httpx2.Client, kube: Kube, *key: str) -> int:
    rows = server.get("/api/v1/traffic").json()["traffic"]
    wanted = (key[0], kube.namespace, key[1])
    found = [row for row in rows if (row["kind"], row["namespace"], row["name"]) == wanted]
    return sum(row["requests"] for row in found)

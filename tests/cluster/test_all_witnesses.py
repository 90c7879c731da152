"""All witnesses of a Pod that asks a Service: its lineage, who may ask, what changed, no secrets.

`fit` writes weights, `scores` serves them, `asker` asks the Service by a short name, and is touched
by hand. `fetch` reads an object by a presigned URL.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import obstore
import pytest
from obstore.store import S3Store
from tests.cluster.audit_agents import begin_now
from tests.cluster.kube import CLEW, Kube, pod
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.cluster.node_agents import create_token, run_node_agents
from tests.cluster.sidecars import ONE_WEBHOOK, install_webhook, select_namespace, wait_for_webhook
from tests.cluster.test_cluster_lineage import pods_of
from tests.cluster.test_node_agent import claim
from tests.driver import Project
from tests.kept_bytes import read_kept
from tests.local.s3_sidecar import KEY, SECRET, s3_server
from tests.local.server import Server, run_server
from tests.wait import wait_until

pytestmark = [pytest.mark.cluster, ONE_WEBHOOK]

CANARIES = {"MYSQL_ROOT_PASSWORD": "c4n4ry-variable-51d7", "VALUE": "c4n4ry-of-the-secret-9be0"}
"""The values of the variables of `asker`; the second one comes from a Secret."""
MARK = "visible-mark-77aa"
"""What stands beside the canaries and is no secret: a search that does not find it proves
nothing."""
USER = "x-user"
POLICY = """
[[select]]
namespaces = ["{spaces}-*"]
[[content]]
namespaces = ["{spaces}-*"]
paths = ["/mark", "/weights"]
"""
ASK = """
trap 'exit 1' TERM
echo {mark} >/data/mark
wget -q -O - http://scores.{models}/ | sed 's/^/answer /' >/data/answer
while [ ! -e /tmp/go ]; do sleep 0.1; done
"""
SERVE = "mkdir -p /tmp/www; cp /data/weights /tmp/www/index.html; exec httpd -f -p 8000 -h /tmp/www"


@dataclass
class Witnessed:
    models: Kube
    """The namespace of the Service."""
    team: Kube
    """The namespace of its client."""
    project: Project
    server: Server
    place: Path
    """Everything that is kept."""
    signature: str
    """Of the presigned URL."""

    @property
    def answer(self) -> str:
        return f"pvc://{self.team.namespace}/out/answer"

    def ask(self, user: str, path: str, **asked: str) -> httpx2.Response:
        with self.server.client(headers=self._headers(user)) as client:
            return client.get(f"/api/v1/{path}", params=asked)

    def post(self, user: str, path: str, body: dict[str, Any]) -> httpx2.Response:
        with self.server.client(headers=self._headers(user)) as client:
            return client.post(f"/api/v1/{path}", json=body)

    def _headers(self, user: str) -> dict[str, str]:
        return {USER: user, "Authorization": f"Bearer {self.server.token}"}


@pytest.fixture(scope="module")
def witnessed(
    cluster: Kube, spaces: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Witnessed]:
    require_local_cluster(cluster)
    place = tmp_path_factory.mktemp("witnesses")
    log = Path(cluster.kubeconfig).parent / "logs" / "audit.log"
    states = [str(place / name) for name in ("audit", "audit-undelivered")]
    for state in states:
        begin_now(Path(state), log)
    address = address_for_pods(cluster)
    with ExitStack() as stack:
        store = _make_bucket(address, stack.enter_context(s3_server(place / "s3", address=address)))
        project = Project(place, KUBECONFIG=cluster.kubeconfig, CLEW_USER_HEADER=USER)
        options = ("--host", address, "--on-cluster", "--apps-port", "0")
        server = stack.enter_context(run_server(project, *options))
        webhook = stack.enter_context(install_webhook(cluster))
        kubes = [_create_namespace(stack, cluster, f"{spaces}-{n}") for n in ("", "models", "team")]
        agents, models, team = kubes
        token, policy = create_token(server), POLICY.format(spaces=spaces)
        stack.enter_context(
            run_node_agents(agents, server, place / "nodes", policy=policy, token=token)
        )
        for user, allowed in (("alice", (team,)), ("bob", (models,)), ("carol", (models, team))):
            for kube in allowed:
                kube("create", "rolebinding", user, "--clusterrole=view", f"--user={user}")
        select_namespace(team)
        wait_for_webhook(webhook, team)
        _start_service(models)
        url = obstore.sign(store, "GET", "model.bin", timedelta(hours=1))
        found = Witnessed(models, team, project, server, place, _signature_of(url))
        _run_clients(found, url)
        read = ("agent", "audit", "--log", str(log), "--once", "--state")
        observer = {**project.environment, **server.variables, "CLEW_TOKEN": token}
        project(*read, states[0], env=observer)
        away = {**observer, "CLEW_SERVER": "http://127.0.0.1:1"}  # nothing listens there
        project.command(*read, states[1], env=away)
        wait_until("the agents have delivered", lambda: _is_known(found))
        yield found


def _create_namespace(stack: ExitStack, cluster: Kube, name: str) -> Kube:
    name = name.rstrip("-")
    cluster("create", "namespace", name)
    stack.callback(cluster, "delete", "namespace", name, "--wait=false")
    kube = Kube(cluster.kubeconfig, name)
    kube("wait", "serviceaccount/default", "--for=create", "--timeout=60s")
    return kube


def _make_bucket(address: str, port: int) -> S3Store:
    store = S3Store(
        "lake",
        endpoint=f"http://{address}:{port}",
        access_key_id=KEY,
        secret_access_key=SECRET,
        client_options={"allow_http": True},
    )
    made = httpx2.put(obstore.sign(store, "PUT", "", timedelta(minutes=1)))
    assert made.is_success, made.text
    obstore.put(store, "model.bin", b"model")
    return store


def _signature_of(url: str) -> str:
    (found,) = parse_qs(urlsplit(url).query)["X-Amz-Signature"]
    return found


def serving_pod(script: str = SERVE, **more: Any) -> dict[str, Any]:
    made = pod("scores", "sh", "-c", script, volume="model", **more)
    (container,) = made["spec"]["containers"]
    container["readinessProbe"] = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return made


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _start_service(models: Kube) -> None:
    """Two Pods write to one claim; the Service has the file of one."""
    models("create", "configmap", "settings", "--from-literal=DEPTH=3")
    models.apply(claim("model"), service("scores"))
    models.run(pod("fit", "sh", "-c", "echo 7 >/data/weights", volume="model"))
    models.run(pod("unrelated", "sh", "-c", "echo 8 >/data/others", volume="model"))
    models.apply(serving_pod())
    models.wait_for("pod/scores", "condition=Ready")


def _run_clients(found: Witnessed, url: str) -> None:
    """While the server answers nothing, what the agents see stays in their spools."""
    team = found.team
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}}
    team.apply(claim("out"), secret | {"stringData": {"value": CANARIES["VALUE"]}})
    reference = {"secretKeyRef": {"name": "password", "key": "value"}}
    variables = [
        {"name": "MYSQL_ROOT_PASSWORD", "value": CANARIES["MYSQL_ROOT_PASSWORD"]},
        {"name": "VALUE", "valueFrom": reference},
        {"name": "MARK", "value": MARK},
    ]
    ask = ASK.format(mark=MARK, models=found.models.namespace)
    asker = pod("asker", "sh", "-ec", ask, volume="out", env=variables)
    get = 'wget -q -O /data/model "$MODEL"'
    fetch = pod("fetch", "sh", "-ec", get, volume="out", env=[{"name": "MODEL", "value": url}])
    for one in (asker, fetch):
        one["spec"]["terminationGracePeriodSeconds"] = 120
    found.server.process.send_signal(signal.SIGSTOP)
    try:
        team.run(fetch)
        team.apply(asker)
        wait_until("it has its answer", lambda: "answer" in _list_files(team))
        wait_until("it is in a spool", lambda: _is_spooled(found, b"/answer"))
        assert _find(found.place / "nodes", b"lake/model.bin") >= {"batch"}
        assert_no_secret(found, found.place / "nodes")
        team("exec", "asker", "--container=main", "--", "touch", "/tmp/go")
    finally:
        found.server.process.send_signal(signal.SIGCONT)
    team.wait_for("pod/asker", "jsonpath={.status.phase}=Succeeded")


def _list_files(team: Kube) -> str:
    return team("exec", "asker", "--container=main", "--", "ls", "/data", ok=False)


def _is_spooled(found: Witnessed, text: bytes) -> bool:
    return "batch" in _find(found.place / "nodes", text)


def _is_known(found: Witnessed) -> bool:
    """Whether the project knows what the clients wrote. `scores` is still watched."""
    files = [f"pvc://{found.team.namespace}/out/{name}" for name in ("answer", "model")]
    known = all(found.project.command("trace", file).returncode == 0 for file in files)
    return known and not any((found.place / "nodes").glob("*/spool/*.batch"))


def _find(folder: Path, text: bytes) -> set[str]:
    """What kinds of things have a text."""
    return {what.partition(" ")[0] for what, data in read_kept(folder) if text in data}


def assert_no_secret(found: Witnessed, folder: Path) -> None:
    secrets = [*CANARIES.values(), found.signature]
    for what, data in read_kept(folder):
        for secret in secrets:
            assert secret.encode() not in data, what


def test_what_a_pod_asked_over_a_service_is_in_its_lineage(witnessed: Witnessed) -> None:
    traced = witnessed.project.json("trace", witnessed.answer)
    assert pods_of(traced) == {"asker", "scores", "fit"}
    files = {node["label"].rpartition("/")[2] for node in traced["nodes"]}
    assert "weights" in files
    assert "others" not in files
    (edge,) = [one for one in traced["edges"] if one.get("via") == "network"]
    assert edge["inferred"]
    weights = f"pvc://{witnessed.models.namespace}/model/weights"
    assert "asker" in pods_of(witnessed.project.json("impact", weights))


def test_a_user_sees_the_namespaces_that_kubernetes_lets_the_user_read(
    witnessed: Witnessed,
) -> None:
    team, models = witnessed.team.namespace, witnessed.models.namespace
    weights = f"pvc://{models}/model/weights"
    seen = {}
    for user in ("alice", "bob", "carol"):
        for target in (witnessed.answer, weights):
            answer = witnessed.ask(user, "lineage", target=target)
            allowed = answer.status_code == 200
            assert allowed or answer.status_code == 403, answer.text
            seen[user, target] = pods_of(answer.json()) if allowed else None
            if not allowed:
                assert "scores" not in answer.text
    assert seen == {
        ("alice", witnessed.answer): {"asker"},
        ("alice", weights): None,
        ("bob", witnessed.answer): None,
        ("bob", weights): {"fit"},
        ("carol", witnessed.answer): {"asker", "scores", "fit"},
        ("carol", weights): {"fit"},
    }
    assert witnessed.ask("alice", "lineage", target=witnessed.answer).json()["withheld"] > 0
    for user, names in (("alice", {team}), ("bob", {models}), ("carol", {team, models})):
        state = witnessed.ask(user, "cluster").json()
        assert {one["namespace"] for one in state["objects"]} == names
    assert witnessed.ask("mallory", "cluster").json()["objects"] == []


def test_the_cluster_as_it_was(witnessed: Witnessed) -> None:
    """While `asker` ran: the Service led to the Pod that answered, and `fit` was over."""
    (asker,) = [
        one
        for one in witnessed.project.json("trace", witnessed.answer)["nodes"]
        if (one.get("pod") or "").endswith("/asker")
    ]
    asked = ("cluster", "--as-of", asker["started"], "--namespace")
    models = witnessed.project.json(*asked, witnessed.models.namespace)["objects"]
    team = witnessed.project.json(*asked, witnessed.team.namespace)["objects"]
    assert {one["name"] for one in models if one["kind"] == "Pod"} == {"scores"}
    assert "asker" in {one["name"] for one in team if one["kind"] == "Pod"}
    (scores,) = [one for one in models if one["kind"] == "Service"]
    assert scores["pods"] == ["scores"]


def test_no_secret_is_kept_or_shown(witnessed: Witnessed) -> None:
    """In files, batches that are not delivered, stored contents, tables, answers and pages."""
    assert _find(witnessed.place, MARK.encode()) >= {"batch", "content", "table"}
    assert _find(witnessed.place / "audit-undelivered", MARK.encode()) >= {"batch"}
    assert_no_secret(witnessed, witnessed.place)
    shown = "\n".join(_list_answers(witnessed))
    assert MARK in shown
    for secret in (*CANARIES.values(), witnessed.signature):
        assert secret not in shown


def _list_answers(found: Witnessed) -> Iterator[str]:
    """What the server, the commands and the agents' own logs say of the Pods."""
    traced = found.project.json("trace", found.answer)
    executions = {one["execution"] for one in traced["nodes"] if one.get("execution")}
    for name in ("answer", "model"):
        target = f"pvc://{found.team.namespace}/out/{name}"
        for path in ("lineage", "impact"):
            yield found.ask("carol", path, target=target).text
        body = {"target": target, "depth": 10}
        for path in ("lineage/graph", "lineage/prov", "lineage/prov?format=n"):
            yield found.post("carol", path, body).text
        for option in ((), ("--dot",), ("--html", "-o", "-")):
            yield found.project("trace", target, *option).stdout
    for one in executions:
        for path in ("?detail=true", "/files", "/processes", "/prov"):
            yield found.ask("carol", f"executions/{one}{path}").text
    for words in ("asker", "password", "MYSQL_ROOT_PASSWORD"):
        yield found.ask("carol", "search", q=words).text
    yield found.ask("carol", "cluster").text
    yield found.ask("carol", "versions", locator=f"secret://{found.team.namespace}/password").text
    pods = [f"pod/{found.team.namespace}/{name}" for name in ("asker", "fetch")]
    yield found.project.command("diff", *pods).stdout.decode()
    yield found.server.log.read_text()


def test_what_changed_since_is_named(witnessed: Witnessed) -> None:
    """The Secret, the image and the ConfigMap behind the Service; and who touched the Pod."""
    models, team = witnessed.models, witnessed.team
    old = _image_of(models)
    models("delete", "pod", "scores")
    models("patch", "configmap", "settings", "--patch", '{"data":{"DEPTH":"4"}}')
    serve = "exec python3 -m http.server 8000 --directory /data"
    models.apply(serving_pod(serve, image=CLEW))
    models.wait_for("pod/scores", "condition=Ready")
    team("patch", "secret", "password", "--patch", '{"stringData":{"value":"other"}}')
    found = reproduce(witnessed)
    service = found[f"service://{models.namespace}/scores"]
    assert f"the image of main was {old}, and is {_image_of(models)}" in service
    assert "the ConfigMap settings was blake3:" in service
    assert found[f"Secret {team.namespace}/password"].startswith("it was written since, at ")
    assert "touched it by hand (exec)" in found["Pod asker"]


def reproduce(found: Witnessed) -> dict[str, str]:
    """What is not as it was, by what it is. The Pod waits for a hand that is not there now."""
    given = [word for name in CANARIES for word in ("--secret", name)]
    environment = {**found.project.environment, **CANARIES}
    words = ("reproduce", found.answer, "--network", "--deadline", "1", *given)
    ran = found.project.command(*words, "--json", env=environment)
    assert ran.returncode == 3, ran.stderr
    document = json.loads(ran.stdout)
    assert [one["pod"] for one in document["plan"]] == ["asker"]
    assert {one["pod"] for one in document["skipped"]} >= {"scores"}
    return {one["what"]: one["why"] for one in reversed(document["not_reproduced"])}


def _image_of(models: Kube) -> str:
    (status,) = models.get("pod", "scores")["status"]["containerStatuses"]
    return str(status["imageID"]).rpartition("@")[2]

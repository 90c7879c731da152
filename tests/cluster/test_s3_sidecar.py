"""Pods that know nothing of Clew use a real S3 server; the sidecar gives them lineage."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.kube import Kube, pod
from tests.cluster.location import require_local_cluster
from tests.cluster.sidecars import (
    INJECT,
    ONE_WEBHOOK,
    install_webhook,
    select_namespace,
    wait_for_webhook,
)
from tests.kept_bytes import read_kept
from tests.local.s3_sidecar import KEY, SECRET
from tests.wait import wait_until
from tools.cluster.binaries import build_program
from tools.cluster.lifecycle import add_image

from clew.agents.sidecars.node_logs import NodeLogs
from clew.agents.sidecars.traffic_sidecar_names import CONTAINER, LABEL
from clew.agents.spool import Spool
from clew.db.sqlite import SQLite
from clew.documents.ids import Uid
from clew.kube.node_pods import NodePods
from clew.prov.cluster.activity_uids import object_uid
from clew.prov.events import AnyEvent, Gap, Used
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestry import find_ancestry
from clew.prov.queries.targets import resolve_target
from clew.witness.volumes.selection import Policy

pytestmark = [pytest.mark.cluster, ONE_WEBHOOK]

CLIENTS = "docker.io/clew/s3-clients:1"

_BEGIN = f"""
import boto3, io, s3fs, ssl, urllib.request
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
client = boto3.client("s3", endpoint_url="http://s3:7070", aws_access_key_id="{KEY}",
    aws_secret_access_key="{SECRET}", region_name="us-east-1",
    config=Config(signature_version="s3v4", s3={{"addressing_style": "path"}}))
files = s3fs.S3FileSystem(key="{KEY}", secret="{SECRET}",
    client_kwargs={{"endpoint_url": "http://s3:7070", "region_name": "us-east-1"}})
part = 5 << 20
parts = TransferConfig(multipart_threshold=part, multipart_chunksize=part)
"""
INGEST = f"""{_BEGIN}
client.create_bucket(Bucket="lake")
client.put_bucket_versioning(Bucket="lake", VersioningConfiguration={{"Status": "Enabled"}})
client.put_object(Bucket="lake", Key="raw.csv", Body=b"1,2")
client.upload_fileobj(io.BytesIO(b"z" * (2 * part)), "lake", "big", Config=parts)
"""
OTHER = f"""{_BEGIN}
client.put_object(Bucket="lake", Key="unrelated", Body=b"x")
"""
TRAIN = f"""{_BEGIN}
raw = files.cat("lake/raw.csv")
whole = io.BytesIO()
client.download_fileobj("lake", "big", whole, Config=parts)
url = client.generate_presigned_url("get_object", Params={{"Bucket": "lake", "Key": "raw.csv"}})
assert urllib.request.urlopen(url).read() == raw == b"1,2"
print(url.partition("X-Amz-Signature=")[2])
assert urllib.request.urlopen("http://scores/").read() == b"7"
no_check = ssl._create_unverified_context()
try:
    urllib.request.urlopen("https://kubernetes.default/", context=no_check)
except urllib.error.HTTPError:
    pass
client.put_object(Bucket="lake", Key="model.pkl", Body=raw + whole.getvalue()[:5])
"""


@pytest.fixture(scope="module")
def inject(cluster: Kube) -> Iterator[Kube]:
    """The webhook, deployed as `kubectl apply -k deploy/agents/inject` does."""
    require_local_cluster(cluster)
    folder = Path(cluster.kubeconfig).parent
    add_image(folder, CLIENTS, Path(__file__).parent / "images/s3-clients/Containerfile")
    with install_webhook(cluster) as own:
        own.wait_for(f"deployment/{INJECT}", "condition=Available")
        yield own


@pytest.fixture
def team(inject: Kube, kube: Kube) -> Kube:
    """A selected namespace with an S3 server and a Service, which are not selected themselves."""
    select_namespace(kube)
    gateway = build_program("versitygw")
    command = "mkdir /data/objects /data/versions; exec /gateway/versitygw --port :7070 --quiet "
    server = pod("s3", "sh", "-c", f"{command} posix --versioning-dir /data/versions /data/objects")
    (container,) = server["spec"]["containers"]
    container["env"] = [
        {"name": "ROOT_ACCESS_KEY_ID", "value": KEY},
        {"name": "ROOT_SECRET_ACCESS_KEY", "value": SECRET},
    ]
    container["volumeMounts"] = [
        {"name": "gateway", "mountPath": "/gateway", "readOnly": True},
        {"name": "data", "mountPath": "/data"},
    ]
    container["readinessProbe"] = {"tcpSocket": {"port": 7070}, "periodSeconds": 1}
    server["spec"]["volumes"] = [
        {"name": "gateway", "hostPath": {"path": str(gateway.parent)}},
        {"name": "data", "emptyDir": {}},
    ]
    serve = "mkdir /www; printf 7 >/www/index.html; exec httpd -f -p 8000 -h /www"
    scores = pod("scores", "sh", "-c", serve)
    for one in (server, scores):
        one["metadata"]["labels"][LABEL] = "false"
    kube.apply(server, scores, service("s3", 7070, 7070), service("scores", 80, 8000))
    for name in ("s3", "scores"):
        kube.wait_for(f"pod/{name}", "condition=Ready")
    return kube


def service(name: str, port: int, target: int) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def client_pod(name: str, program: str) -> dict[str, Any]:
    made = pod(name, "python3", "-c", program, image=CLIENTS)
    made["spec"]["terminationGracePeriodSeconds"] = 120
    return made


class Agents:
    """The readers of both nodes, in this process; `events` are what they have seen so far."""

    def __init__(self, kube: Kube, nodes: list[str], folder: Path) -> None:
        self._spool = Spool(folder / "spool")
        cluster = Path(kube.kubeconfig).parent
        self._stopping = threading.Event()
        self._threads = []
        for node in nodes:
            kubelet = cluster / node / "kubelet"
            logs = NodeLogs(self._spool, folder / node, policy=Policy(), kubelet=kubelet)
            NodePods(node, logs.see, logs.forget).start()
            self._threads.append(threading.Thread(target=logs.run, args=(self._stopping,)))
        for thread in self._threads:
            thread.start()

    def events(self, uid: Uid) -> list[AnyEvent]:
        found = (e for batch in self._spool.list_batches() for e in self._spool.read(batch))
        return [event for event in found if event.execution == uid]

    def stop(self) -> list[AnyEvent]:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        found = [e for batch in self._spool.list_batches() for e in self._spool.read(batch)]
        self._spool.close()
        return found


@pytest.fixture
def start_agents(
    cluster: Kube, nodes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Agents]]:
    monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
    started: list[Agents] = []

    def start() -> Agents:
        started.append(Agents(cluster, nodes, tmp_path / "agents"))
        return started[-1]

    yield start
    for one in started:
        one._stopping.set()


def uid_of(kube: Kube, name: str) -> Uid:
    found = object_uid(kube.get("pod", name)["metadata"]["uid"])
    assert found is not None
    return found


def test_objects_link_pods_that_know_nothing_of_it(
    team: Kube, start_agents: Callable[[], Agents], tmp_path: Path
) -> None:
    agents = start_agents()
    for name, program in (("ingest", INGEST), ("other", OTHER)):
        team.run(client_pod(name, program))
    team.apply(client_pod("train", TRAIN))
    team.wait_for("pod/train", "jsonpath={.status.phase}=Succeeded")
    signature = team("logs", "train", "--container=main").strip().encode()
    names = {name: uid_of(team, name) for name in ("ingest", "other", "train")}
    events = agents.stop()

    graph = Graph(SQLite(tmp_path / "graph.db"), Uid("p" * 32))
    graph.import_observations(events)
    target = resolve_target(
        graph,
        "s3://lake/model.pkl",
        machine="m",
        locate=lambda path: path,
        digest_of=lambda _: None,
    )
    found = find_ancestry(graph, target, everything=True)
    assert {one.uid for one in found.pods} == {names["ingest"], names["train"]}
    train = next(one for one in found.pods if one.uid == names["train"])
    read = {one.locator for one in train.inputs if one.makers == (names["ingest"],)}
    assert read == {"s3://lake/raw.csv", "s3://lake/big"}
    assert not [one for one in train.inputs if one.locator.startswith("s3:") and one.inferred]
    graph.connection.close()

    own = [event for event in events if event.execution == names["train"]]
    peers = {e.version.locator for e in own if isinstance(e, Used) and e.how == "connect"}
    address = team.get("service", "scores")["spec"]["clusterIP"]
    api = "service://default/kubernetes"
    assert {f"ip://{address}", f"service://{team.namespace}/scores", api} <= peers
    assert {e.locator for e in own if isinstance(e, Gap)} == {api}
    batches = [data for what, data in read_kept(tmp_path / "agents") if what.startswith("batch")]
    assert any(b"lake/model.pkl" in batch for batch in batches)
    assert len(signature) == 64
    assert not any(signature in batch for batch in batches)
    assert signature not in repr(events).encode()


def test_a_sidecar_waits_at_its_end_until_its_log_was_read(
    team: Kube, start_agents: Callable[[], Agents]
) -> None:
    team.apply(client_pod("ingest", INGEST))
    ended = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}=0"
    team.wait_for("pod/ingest", ended)
    assert team.get("pod", "ingest")["status"]["phase"] == "Running"
    agents = start_agents()
    team("delete", "pod", "ingest", "--wait=false")
    uid = uid_of(team, "ingest")
    team.wait_for("pod/ingest", "delete")
    wait_until("the writes arrive", lambda: len(agents.events(uid)) > 3)
    assert "s3://lake/big" in repr(agents.events(uid))


def test_an_outage_of_the_webhook_is_said_and_concerns_no_other_pod(
    inject: Kube, team: Kube, kube: Kube, start_agents: Callable[[], Agents]
) -> None:
    with without_webhook(inject):
        selected = pod("selected", "true")
        selected["metadata"]["labels"][LABEL] = "true"
        unselected = pod("unselected", "true")
        unselected["metadata"]["labels"][LABEL] = "false"
        agents = start_agents()
        kube.run(unselected)
        kube.run(selected)
        uid = uid_of(kube, "selected")
        assert "initContainers" not in kube.get("pod", "selected")["spec"]
        wait_until("the gap arrives", lambda: agents.events(uid))
    gaps = [event.why for event in agents.events(uid) if isinstance(event, Gap)]
    assert gaps == ["the Pod was selected, and admitted without the sidecar"]
    wait_for_webhook(inject, kube)
    kube.run(pod("later", "true"))
    init = kube.get("pod", "later")["spec"]["initContainers"]
    assert CONTAINER in [one["name"] for one in init]


@contextmanager
def without_webhook(inject: Kube) -> Iterator[None]:
    inject("scale", f"deployment/{INJECT}", "--replicas=0")
    pods = ("pods", "--selector", f"app.kubernetes.io/name={INJECT}")
    inject("wait", *pods, "--for=delete", "--timeout=180s")
    try:
        yield
    finally:
        inject("scale", f"deployment/{INJECT}", "--replicas=2")
        inject("rollout", "status", f"deployment/{INJECT}", "--timeout=180s")

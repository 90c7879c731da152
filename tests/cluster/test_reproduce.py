"""`clew reproduce` in a scratch namespace: what Pods leave, and what is left of the command."""

import multiprocessing
import os
import secrets
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.deployment import act_as_service_account, render
from tests.cluster.kube import CLEW, Kube, pod
from tests.cluster.operator import run_operator
from tests.pod_records import HandwrittenRecord, digest
from tests.wait import wait_until
from tools.cluster.images import BUSYBOX

from clew.api.reproduction.cluster_run import reproduce_on_cluster
from clew.api.reproduction.current_peers import find_peer_change
from clew.api.reproduction.peer_checks import check_peers
from clew.api.reproduction.plan_report import plan_reproduction
from clew.api.reproduction.preparation import RunOptions
from clew.api.reproduction.secret_checks import check_secrets
from clew.documents.document import to_nanoseconds
from clew.documents.ids import Locator, Uid
from clew.documents.lineage.reproduction import Reproduction
from clew.kube.scratch.manifests import (
    BUCKETS,
    LABEL,
    PREFIX,
    Space,
    format_micro_time,
    make_lease,
    make_namespace,
)
from clew.kube.scratch.scratch_client import ScratchClient
from clew.kube.scratch.scratch_space import remove_abandoned, remove_all_abandoned
from clew.prov.cluster.ancestry_types import Peer, PeerPod

pytestmark = pytest.mark.cluster

RAW = b"3\n1\n2\n"
SORTED = b"1\n2\n3\n"
MODEL = f"{md5(SORTED, usedforsecurity=False).hexdigest()}  -\n".encode()


def reproduce(
    record: HandwrittenRecord,
    *,
    namespace: str | None = None,
    say: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> Reproduction:
    with ScratchClient() as client:
        return reproduce_on_cluster(
            record,
            plan_reproduction(record, "target"),
            RunOptions(options.pop("given", {}), **options),
            client=client,
            namespace=namespace,
            image=CLEW,
            s3={},
            say=say,
        )


@pytest.fixture
def record(kube: Kube, monkeypatch: pytest.MonkeyPatch) -> HandwrittenRecord:
    monkeypatch.setenv("KUBECONFIG", kube.kubeconfig)
    kube.run(pod("image", "true"))
    status = kube.get("pod", "image")["status"]["containerStatuses"][0]
    return HandwrittenRecord(BUSYBOX, status["imageID"].rpartition("@")[2])


def objects(kube: Kube) -> list[str]:
    """What has our label in the namespace."""
    kinds = "pods,persistentvolumeclaims,configmaps,secrets,networkpolicies,leases"
    return kube("get", kinds, "-l", LABEL, "-o", "name").split()


def namespaces(kube: Kube) -> list[str]:
    return kube("get", "namespaces", "-l", LABEL, "-o", "name").split()


def test_the_same_bytes_on_fresh_volumes_and_nothing_is_left(
    kube: Kube, record: HandwrittenRecord
) -> None:
    """In a namespace of the caller; a secret is given, and the network is closed."""
    variable = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}
    script = "test ${#KEY} = 6; sort /data/in/raw > /data/out/sorted"
    reads, writes = {"in/raw": RAW}, {"out/sorted": SORTED}
    record.pod("prepare", script, reads=reads, writes=writes, env=[variable])
    record.pod(
        "train",
        "md5sum < /data/out/sorted > /data/model",
        reads={"out/sorted": SORTED},
        writes={"model": MODEL},
    )
    seen: list[str] = []

    def look(said: str) -> None:
        seen.append(said)
        assert "canary" not in kube("get", "pods", "-o", "yaml")

    done = reproduce(record, namespace=kube.namespace, say=look, given={"KEY": "canary"})
    assert done.verdict == "identical", done
    assert done.compared == 2
    assert seen == ["run prepare (1 of 2)", "run train (2 of 2)"]
    wait_until("everything is gone", lambda: not objects(kube))


def test_the_first_pod_that_left_something_else_is_named(record: HandwrittenRecord) -> None:
    record.pod("steady", "echo a > /data/a", writes={"a": b"a\n"})
    record.pod(
        "random",
        "cat /data/a /proc/sys/kernel/random/uuid > /data/b",
        reads={"a": b"a\n"},
        writes={"b": b"a\nx\n", "c": b"never"},
    )
    done = reproduce(record)
    assert done.verdict == "different"
    assert [(one.pod, one.kind) for one in done.differences] == [
        ("random", "content"),
        ("random", "missing"),
    ]
    assert done.divergence is not None
    assert done.divergence.pod == "random"


def test_pods_that_cannot_run_or_end(kube: Kube, record: HandwrittenRecord) -> None:
    before = {"name": "wait", "image": BUSYBOX, "command": ["sleep", "3600"]}
    record.pod("stuck", "true", writes={"a": b""}, initContainers=[before])
    done = reproduce(record, deadline=5)
    assert done.verdict == "different"
    assert any("DeadlineExceeded" in one.why for one in done.not_reproduced), done
    gone = HandwrittenRecord("docker.io/library/gone:1", "sha256:" + "0" * 64)
    gone.pod("gone", "true", writes={"a": b""})
    done = reproduce(gone, namespace=kube.namespace)
    assert any("the image" in one.why and "is gone" in one.why for one in done.not_reproduced), done


def test_a_hostile_record_creates_nothing(kube: Kube, record: HandwrittenRecord) -> None:
    record.pod("evil", "true", writes={"a": b""}, hostPID=True, hostNetwork=True)
    done = reproduce(record, namespace=kube.namespace)
    assert done.verdict is None
    assert {one.why for one in done.not_reproduced} == {
        "it used the network of the node",
        "it used the processes of the node",
    }
    assert objects(kube) == []


def test_what_a_killed_command_left_goes_with_the_next_one(
    kube: Kube, record: HandwrittenRecord
) -> None:
    asked: list[list[str]] = []

    def gone(buckets: list[str]) -> bool:
        asked.append(buckets)
        return True

    def still_there(buckets: list[str]) -> bool:
        asked.append(buckets)
        return False

    record.pod("slow", "sleep 600", writes={"a": b""})
    before = set(namespaces(kube))
    process = multiprocessing.get_context("fork").Process(target=reproduce, args=(record,))
    process.start()
    try:
        (name,) = wait_until("a namespace", lambda: set(namespaces(kube)) - before)
        space = Kube(kube.kubeconfig, name.removeprefix("namespace/"))
        wait_until("a Pod", lambda: "p1-" in space("get", "pods", "-o", "name"))
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    with ScratchClient() as client:
        assert space.namespace not in remove_abandoned(client, remove_buckets=gone)  # not expired
        old = format_micro_time(datetime.now(UTC) - timedelta(hours=1))
        (lease,) = space("get", "leases", "-l", LABEL, "-o", "name").split()
        space("patch", lease, "--type=merge", "-p", f'{{"spec": {{"renewTime": "{old}"}}}}')
        assert asked == []  # it had no bucket
        space("annotate", lease, f"{BUCKETS}=1", "--overwrite")
        assert space.namespace not in remove_abandoned(client, remove_buckets=still_there)
        assert space("get", lease, "-o", "name").strip() == lease
        assert space.namespace in remove_abandoned(client, remove_buckets=gone)
        assert asked[0] == asked[1] and asked[0][0].startswith("clew-reproduce-")
    space.wait_for(name, "delete")


def test_what_changed_since_the_pods_ran_is_named(kube: Kube, record: HandwrittenRecord) -> None:
    """A Secret, and the image and the ConfigMap behind a Service; then both are gone."""
    kube("create", "secret", "generic", "password", "--from-literal=value=1")
    kube("create", "configmap", "settings", "--from-literal=DEPTH=3")
    ports = {"selector": {"app": "scores"}, "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "scores"}, "spec": ports}
    kube.apply(service)
    image = _serve(kube, BUSYBOX)
    metadata = kube.get("secret", "password")["metadata"]
    began = datetime.fromisoformat(metadata["creationTimestamp"])
    made = HandwrittenRecord(
        BUSYBOX,
        record.image_id,
        namespace=kube.namespace,
        began=to_nanoseconds(began),
    )
    behind = PeerPod(
        uid=Uid("scores"),
        namespace=kube.namespace,
        name="scores",
        images={"main": image},
        config_maps={"settings": digest(b'{"binaryData":{},"data":{"DEPTH":"3"}}')},
    )
    place = Locator(f"service://{kube.namespace}/scores")
    made.pod(
        "asker",
        "echo 1 > /data/a",
        writes={"a": b"1\n"},
        peers=[Peer(locator=place, pods=(behind,))],
        secrets=["password"],
    )
    secret, asked = f"Secret {kube.namespace}/password", "Pod asker talked to it: "
    same = f"{asked}the images and ConfigMaps behind it are as they were"
    assert find_changes(made) == {place: same}
    kube("delete", "pod", "scores")
    kube("patch", "configmap", "settings", "--patch", '{"data":{"DEPTH":"4"}}')
    kube("patch", "secret", "password", "--patch", '{"stringData":{"value":"2"}}')
    now = _serve(kube, CLEW)
    changed = digest(b'{"binaryData":{},"data":{"DEPTH":"4"}}')
    after = find_changes(made)
    assert after[secret].startswith("it was written since, at ")
    assert after[place] == (
        f"{asked}the image of main was {image}, and is {now},"
        f" the ConfigMap settings was {behind.config_maps['settings']}, and is {changed}"
    )
    kube("delete", "service/scores", "secret/password")
    assert find_changes(made) == {place: f"{asked}it is gone", secret: "it is gone"}


def _serve(kube: Kube, image: str) -> str:
    """Let a Pod with this image be behind the Service, and return the digest of the image."""
    serving = pod("scores", "sleep", "3600", image=image)
    serving["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    kube.apply(serving)
    kube.wait_for("pod/scores", "condition=Ready")
    uid = kube.get("pod", "scores")["metadata"]["uid"]

    def is_behind() -> bool:
        slices = kube.get("endpointslices", "-l", "kubernetes.io/service-name=scores")["items"]
        ends = [end for one in slices for end in one["endpoints"] or ()]
        return [end["targetRef"]["uid"] for end in ends] == [uid] and ends[0]["conditions"]["ready"]

    wait_until("the Service leads to it", is_behind)
    (status,) = kube.get("pod", "scores")["status"]["containerStatuses"]
    return str(status["imageID"]).rpartition("@")[2]


def find_changes(record: HandwrittenRecord) -> dict[str, str]:
    """What is not as it was, before anything runs."""
    stages = plan_reproduction(record, "target").stages.stages
    with ScratchClient() as client:
        found = [
            *check_secrets(client, stages),
            *check_peers(
                stages,
                RunOptions({}, network=True),
                find_change=lambda peer: find_peer_change(client, peer),
            ),
        ]
    return {one.what: one.why for one in found}


def test_the_operator_removes_what_killed_commands_left(
    cluster: Kube, kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rights of `deploy/reproductions`, and nothing but what is of a reproduction."""
    monkeypatch.setenv("KUBECONFIG", cluster.kubeconfig)
    found = render(kube, "reproductions")
    policies = [each for each in found if each["kind"].startswith("ValidatingAdmission")]
    own = f"system:serviceaccount:{kube.namespace}:clew-operator"
    for each in policies:
        each["metadata"]["name"] += f"-{kube.namespace}"
        if "policyName" in each["spec"]:
            each["spec"]["policyName"] += f"-{kube.namespace}"
        else:
            each["spec"]["matchConditions"][0]["expression"] = (
                f"request.userInfo.username == '{own}'"
            )
    kube.apply(*policies)
    account = act_as_service_account(kube, found, "clew-operator", tmp_path, everywhere=True)
    try:
        with account as operator:
            refused = ("delete", "namespace", kube.namespace, "--dry-run=server")
            wait_until("the policy holds", lambda: not operator(*refused, ok=False))
            with pytest.raises(AssertionError, match="it is not of a reproduction"):
                operator(*refused)
            abandoned = _abandon(cluster, buckets=0)
            kept = _abandon(cluster, buckets=1)
            monkeypatch.setenv("KUBECONFIG", operator.kubeconfig)
            assert abandoned in remove_all_abandoned()
            cluster.wait_for(f"namespace/{abandoned}", "delete")
        again = _abandon(cluster, buckets=0)
        with run_operator(kube, tmp_path, "--remove-reproductions"):
            cluster.wait_for(f"namespace/{again}", "delete")
        assert f"namespace/{kept}" in namespaces(cluster)
        cluster("delete", "namespace", kept, "--wait=false")
    finally:
        for each in policies:
            kube("delete", each["kind"], each["metadata"]["name"])


def _abandon(cluster: Kube, *, buckets: int) -> str:
    """The namespace of a command that was killed an hour ago."""
    space = Space(secrets.token_hex(4), "")
    space = Space(space.name, f"{PREFIX}{space.name}")
    old = datetime.now(UTC) - timedelta(hours=1)
    lease = make_lease(space, "killed", old, buckets=buckets)
    Kube(cluster.kubeconfig, space.namespace).apply(make_namespace(space), lease)
    return space.namespace

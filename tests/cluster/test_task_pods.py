"""Pods of tasks: how they end, what keeps them from starting, and what breaks meanwhile."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.audit_agents import restart_api_server
from tests.cluster.concurrency import ALL_NAMESPACES
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.task_pods import RUN, WAIT, MakeTasks, Tasks, helper, let_go
from tests.local.programs.compiling import HERE, compile_pipeline
from tests.wait import wait_until

from clew.errors import Exists
from clew.kube.tasks.manifest import build_manifest
from clew.kube.tasks.pod_follower import STOPPED
from clew.kube.tasks.task_pod import (
    ClaimVolume,
    ConfigMapVolume,
    FieldVariable,
    KeyVariable,
    Mount,
    SecretVolume,
)
from clew.kube.tasks.volume_claims import TaskClaim, create_claim, delete_claim
from clew.pipelines.engine.engine import Engine, StartTask
from clew.pipelines.pods.task_pod_builder import TaskPlace, build_pod
from clew.pipelines.spec.arguments import bind_text
from clew.pipelines.spec.parser import parse_pipeline
from clew.pipelines.tasks.executor_files import build_executor_input

pytestmark = pytest.mark.cluster


@pytest.fixture
def make_tasks(kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeTasks]:
    monkeypatch.setenv("KUBECONFIG", kube.kubeconfig)
    made: list[Tasks] = []

    def make(**options: Any) -> Tasks:
        made.append(Tasks(kube, tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def tasks(make_tasks: MakeTasks) -> Tasks:
    return make_tasks()


def quota(**hard: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": hard},
    }


def test_how_pods_end(tasks: Tasks) -> None:
    ok = tasks.start("ok", "echo from $WHERE; echo $$ >&2; printf 'no newline'", env={"WHERE": "x"})
    failed = tasks.start("failed", "echo why >&2; exit 3")
    missing = tasks.start("missing", "/no/such/program", "x")
    memory = tasks.start(
        "memory", "x=$(head -c 300m /dev/zero | tr '\\0' x)", limits={"memory": "32Mi"}
    )
    late = tasks.start("late", "sleep 600", deadline=3)
    no_inputs = tasks.start("no-inputs", "true", helper=helper("raise SystemExit('S3 is away')"))

    found = ok.end()
    assert (found.status, found.problem, found.message) == (0, None, "status 0")
    assert found.node
    assert found.image_digest
    assert found.started
    assert found.ended
    lines = ok.log.read_text().split("\n")
    assert sorted(lines[:2])[1:] == ["from x"]
    assert lines[-1] == "no newline"
    assert ok.said == [f"it runs on {found.node}"]

    outcome = failed.end()
    assert (outcome.status, outcome.problem) == (3, "it ended with status 3")
    assert outcome.message == "status 3"
    assert failed.log.read_text() == "why\n"
    assert missing.end().status == 127
    assert "/no/such/program" in missing.log.read_text()
    outcome = memory.end()
    assert outcome.problem == "it used more memory than its limit of 32Mi, and was killed"
    outcome = late.end()
    assert outcome.problem is not None
    assert outcome.problem.startswith("it ran longer than its time limit")
    outcome = no_inputs.end()
    assert outcome.problem == "its inputs could not be fetched: S3 is away"
    for one in (ok, failed, missing, memory, late, no_inputs):
        tasks.runner.remove(one.name)
    wait_until("all are removed", lambda: not tasks.names())


def test_what_keeps_a_pod_from_starting(make_tasks: MakeTasks) -> None:
    """Said at once, and given up after a while where waiting does not help."""
    tasks = make_tasks(patience=2)
    image = tasks.start("image", "true", image="docker.io/clew/none:1", pull_policy="Never")
    secret = KeyVariable("A", "secret", "absent", "key")
    variable = tasks.start("variable", "true", key_variables=(secret,))
    volume = tasks.start("volume", "true", mounts=(Mount("/a", SecretVolume("absent")),))
    claim = tasks.start("claim", "true", mounts=(Mount("/a", ClaimVolume("absent")),))
    nowhere = tasks.start("nowhere", "true", node_selector={"no": "node"})
    large = tasks.start("large", "true", requests={"cpu": "1000"})
    invalid = tasks.start("invalid", "true", node_selector={"not a label": "x"})

    for one, text in (
        (image, "The image is not on the node, and may not be pulled"),
        (variable, 'secret "absent" not found'),
        (volume, 'secret "absent" not found'),
        (claim, "A volume of the Pod does not exist"),
        (invalid, "is not valid"),
    ):
        outcome = one.end()
        assert outcome.status is None
        assert text in str(outcome.problem)
    nowhere.await_word("No node fits")
    large.await_word("No node has enough free resources: ")
    for one in (nowhere, large):  # a node may be added
        tasks.runner.stop(one.name)
        assert one.end().problem == STOPPED
    wait_until("all are gone", lambda: not tasks.names())


def test_an_image_that_cannot_be_pulled(make_tasks: MakeTasks) -> None:
    """The registry may be away for a moment only: another try makes sense."""
    tasks = make_tasks(patience=0)
    started = tasks.start("pulled", "true", image="registry.invalid/none:1", pull_policy="Always")
    started.await_word("The image cannot be pulled (registry.invalid/none:1)")
    outcome = started.end()
    assert outcome.transient
    assert "The image cannot be pulled" in str(outcome.problem)


def test_every_setting_that_the_sdk_writes(tasks: Tasks, tmp_path: Path) -> None:
    """The API server knows all fields of the Pod, and takes their values."""
    pipeline = parse_pipeline(
        compile_pipeline(HERE / "pod_settings.py", tmp_path).read_text(), "pod_settings.yaml"
    )
    started = Engine(pipeline, bind_text(pipeline, {}), {}).begin()[0]
    assert isinstance(started, StartTask)
    place = TaskPlace(
        namespace=tasks.kube.namespace, run=RUN, attempt=1, url="s3://b/k", helper_image="clew:1"
    )
    executor_input = build_executor_input(started.node, place.url, "/s3/b/k")
    wanted = build_pod(started.node, place, executor_input, {})
    made = tasks.client.create(build_manifest(wanted), dry_run=True)
    spec, main = made["spec"], made["spec"]["containers"][1]
    assert made["metadata"]["labels"]["team"] == "blue"
    assert made["metadata"]["annotations"]["why"] == "because"
    assert spec["activeDeadlineSeconds"] == 3600
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    keys = [one["key"] for one in spec["tolerations"]]
    assert keys[:2] == ["gpu", "spot"]
    assert set(spec["affinity"]["nodeAffinity"]) == {
        "preferredDuringSchedulingIgnoredDuringExecution",
        "requiredDuringSchedulingIgnoredDuringExecution",
    }
    assert main["resources"]["limits"] == {"cpu": "1", "memory": "64Mi", "nvidia.com/gpu": "2"}
    assert main["resources"]["requests"]["cpu"] == "100m"
    assert main["securityContext"]["runAsUser"] == 1000
    assert main["imagePullPolicy"] == "IfNotPresent"
    variables = {one["name"] for one in main["env"]}
    assert variables >= {"PLAIN", "PASSWORD", "MAYBE", "MODE", "TEAM", "ADDRESS"}
    paths = {one["mountPath"] for one in main["volumeMounts"]}
    assert paths >= {"/secret", "/modes", "/data", "/more", "/scratch", "/own"}
    kinds = [next(iter(set(one) - {"name"})) for one in spec["volumes"]]
    assert kinds.count("persistentVolumeClaim") == 1
    assert {"secret", "configMap", "ephemeral"} <= set(kinds)


def test_settings_from_the_namespace(kube: Kube, tasks: Tasks) -> None:
    kube("create", "secret", "generic", "login", "--from-literal=password=pass-word")
    kube("create", "configmap", "modes", "--from-literal=mode=fast")
    started = tasks.start(
        "settings",
        "echo $PASSWORD $MODE $ABSENT $POD; cat /config/mode /secret/password; id -u",
        key_variables=(
            KeyVariable("PASSWORD", "secret", "login", "password"),
            KeyVariable("MODE", "configmap", "modes", "mode"),
            KeyVariable("ABSENT", "secret", "none", "key", optional=True),
        ),
        field_variables=(FieldVariable("POD", "metadata.name"),),
        mounts=(
            Mount("/config", ConfigMapVolume("modes")),
            Mount("/secret", SecretVolume("login")),
            Mount("/none", SecretVolume("none", optional=True)),
        ),
        run_as_user=1234,
    )
    assert started.end().problem is None
    expected = f"pass-word fast {started.name}\nfastpass-word1234\n"
    assert started.log.read_text() == expected


def test_a_namespace_where_nobody_may_be_root(kube: Kube, cluster: Kube, tasks: Tasks) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    cluster("label", "namespace", kube.namespace, label)
    started = tasks.start("modest", "id -u; touch /s3/made")
    assert started.end().problem is None
    assert started.log.read_text() == "1000\n"


def test_a_log_that_is_written_faster_than_it_is_followed(tasks: Tasks) -> None:
    """Larger than a file of the node's: the node begins another meanwhile."""
    text = "of a rather long log that somebody writes as fast as possible"
    loop = f"i=0; while [ $i -lt 200000 ]; do i=$((i+1)); echo line $i {text}; done"
    started = tasks.start("loud", loop)
    assert started.end().problem is None
    lines = started.log.read_text().splitlines()
    assert lines == [f"line {number} {text}" for number in range(1, 200001)]


def test_a_quota_that_is_freed_later(kube: Kube, tasks: Tasks) -> None:
    kube.apply(quota(pods="1", **{"requests.cpu": "2"}))
    requests = {"cpu": "10m"}
    first = tasks.start("first", WAIT, requests=requests)
    first.await_word("it runs on")
    second = tasks.start("second", "true", requests=requests)
    second.await_word("the quota of this namespace leaves no room for it")
    never = tasks.start("never", "true", requests={"cpu": "3"})
    assert "exceeded quota" in str(never.end().problem)  # it has room at no time
    waiting = tasks.start("waiting", "true", requests=requests)
    waiting.await_word("the quota of this namespace leaves no room for it")
    tasks.runner.stop(waiting.name)
    assert waiting.end().problem == STOPPED
    let_go(tasks, first)
    assert first.end().problem is None
    assert second.end().problem is None


def test_a_pod_that_somebody_else_removes(kube: Kube, tasks: Tasks) -> None:
    deleted, evicted = tasks.start("deleted", WAIT), tasks.start("evicted", WAIT)
    deleted.await_word("it runs on")
    evicted.await_word("it runs on")
    kube("delete", "pod", deleted.name, "--wait=false", "--grace-period=1")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": evicted.name, "namespace": kube.namespace},
        "deleteOptions": {"gracePeriodSeconds": 1},
    }
    path = f"/api/v1/namespaces/{kube.namespace}/pods/{evicted.name}/eviction"
    kube("create", "--raw", path, "-f", "-", given=json.dumps(eviction))
    outcome = deleted.end()
    assert outcome.transient
    assert outcome.problem == "a user or another controller deleted its Pod while it ran"
    outcome = evicted.end()
    assert outcome.transient
    assert str(outcome.problem).startswith("it was evicted, because its node is being emptied")


def test_cancelled_pods_are_removed(tasks: Tasks) -> None:
    """Running, waiting for its inputs, or ignoring signals."""
    running = tasks.start("running", f"echo on; {WAIT}")
    waiting = tasks.start("waiting", "true", helper=helper("import time; time.sleep(600)"))
    stubborn = tasks.start("stubborn", f"trap '' TERM; echo on; {WAIT}")
    running.await_output("on")
    stubborn.await_output("on")
    waiting.await_word("it runs on")
    for one in (running, waiting, stubborn):
        tasks.runner.stop(one.name, grace_seconds=1)
    for one in (running, waiting, stubborn):
        assert one.end().problem == STOPPED
    assert tasks.names() == []


def test_another_runner_follows_the_pods_that_exist(kube: Kube, tasks: Tasks) -> None:
    running, ended = (
        tasks.start("running", f"echo begun; {WAIT}; echo done"),
        tasks.start("ended", "echo short"),
    )
    running.await_output("begun")
    ended.await_word("it runs on")
    uids = {name: kube.get("pod", name)["metadata"]["uid"] for name in tasks.names()}
    tasks.restart()
    kube.wait_for(f"pod/{ended.name}", "jsonpath={.status.phase}=Succeeded")
    again = [
        tasks.start("running", f"echo begun; {WAIT}; echo done"),
        tasks.start("ended", "echo short"),
    ]
    let_go(tasks, again[0])
    assert [one.end().status for one in again] == [0, 0]
    assert again[0].log.read_text() == "begun\ndone\n"
    assert again[1].log.read_text() == "short\n"
    assert uids == {name: kube.get("pod", name)["metadata"]["uid"] for name in tasks.names()}
    assert len(uids) == 2


def test_a_pod_of_another_run_is_left_alone(
    kube: Kube, tasks: Tasks, make_tasks: MakeTasks
) -> None:
    made = tasks.start("taken", WAIT)
    made.await_word("it runs on")
    kube("label", "pod", made.name, f"clew.dev/run={RUN}-other", "--overwrite")
    outcome = make_tasks().start("taken", WAIT).end()
    assert "that this run has not made" in str(outcome.problem)
    assert kube("get", "pod", made.name, "-o", "name")


@ALL_NAMESPACES
def test_the_api_server_restarts(kube: Kube, tasks: Tasks) -> None:
    """Every line of the log arrives, and none twice; an end that nobody saw is found."""
    require_local_cluster(kube)
    script = "i=0; until [ -e /tmp/go ]; do i=$((i+1)); echo line $i; sleep 0.02; done; echo end $i"
    talking, short = tasks.start("talking", script), tasks.start("short", "sleep 2; exit 4")
    talking.await_output("line 50\n")
    short.await_word("it runs on")
    restart_api_server(kube, how="KILL")  # TERM waits for a minute: the log is a long request
    later = tasks.start("later", "true")
    assert later.end().problem is None
    assert short.end().status == 4
    seen = talking.log.read_text().count("\n")
    talking.await_output(f"line {seen + 50}\n")
    let_go(tasks, talking)
    assert talking.end().problem is None
    lines = talking.log.read_text().splitlines()
    count = int(lines.pop().removeprefix("end "))
    assert lines == [f"line {number}" for number in range(1, count + 1)]


def test_the_rights_of_the_server_suffice(kube: Kube, make_tasks: MakeTasks) -> None:
    """All that `deploy/server/rbac.yaml` grants, and nothing else."""
    objects = list(yaml.safe_load_all(Path("deploy/server/rbac.yaml").read_text()))
    rules = next(one["rules"] for one in objects if one["kind"] == "ClusterRole")
    version, name = {"apiVersion": "rbac.authorization.k8s.io/v1"}, {"metadata": {"name": "server"}}
    user = f"server-of-{kube.namespace}"
    group = "rbac.authorization.k8s.io"
    kube.apply(
        {**version, **name, "kind": "Role", "rules": rules},
        {
            **version,
            **name,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "server"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        },
    )
    tasks = make_tasks(user=user, patience=1)
    ended = tasks.start("ended", "echo here")
    stopped = tasks.start("stopped", WAIT)
    no_secret = tasks.start("no-secret", "true", mounts=(Mount("/a", SecretVolume("absent")),))
    assert ended.end().problem is None
    assert ended.log.read_text() == "here\n"
    stopped.await_word("it runs on")
    tasks.runner.stop(stopped.name)
    assert stopped.end().problem == STOPPED
    assert 'secret "absent" not found' in str(no_secret.end().problem)  # an event says so
    tasks.runner.remove(ended.name)
    wait_until("all are removed", lambda: not tasks.names())
    claim = TaskClaim(
        name="data",
        namespace=kube.namespace,
        run=RUN,
        task="t",
        size="1Mi",
        access_modes=("ReadWriteOnce",),
    )
    create_claim(tasks.client, claim)
    create_claim(tasks.client, claim)
    delete_claim(tasks.client, kube.namespace, "data")


def test_claims(kube: Kube, tasks: Tasks) -> None:
    claim = TaskClaim(
        name="data",
        namespace=kube.namespace,
        run=RUN,
        task="make-volume",
        size="1Mi",
        access_modes=("ReadWriteOnce",),
        annotations={"team": "a"},
    )
    create_claim(tasks.client, claim)
    create_claim(tasks.client, claim)  # an engine that was restarted
    other = TaskClaim(
        name="data",
        namespace=kube.namespace,
        run="run-2",
        task="make-volume",
        size="1Mi",
        access_modes=("ReadWriteOnce",),
    )
    with pytest.raises(Exists, match="data"):
        create_claim(tasks.client, other)
    mount = Mount("/data", ClaimVolume("data"), sub_path="inner")
    assert tasks.start("write", "echo kept > /data/a", mounts=(mount,)).end().problem is None
    whole = Mount("/data", ClaimVolume("data"))
    reading = tasks.start("read", "cat /data/inner/a", mounts=(whole,))
    assert reading.end().problem is None
    assert reading.log.read_text() == "kept\n"
    for name in tasks.names():
        tasks.runner.remove(name)
    delete_claim(tasks.client, kube.namespace, "data")
    delete_claim(tasks.client, kube.namespace, "data")
    wait_until("the claim is gone", lambda: not kube("get", "pvc", "-o", "name"))

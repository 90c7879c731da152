"""TFJobs and PyTorchJobs of real Pods: how they end, start again, are suspended and deleted."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.kube import Kube
from tests.cluster.operator import Operator, claim, run_operator
from tests.cluster.training_jobs import (
    FOREVER,
    pods_of,
    ready,
    reasons,
    replicas,
    services_of,
    training_job,
    wait_for_condition,
)
from tests.wait import wait_until
from tools.cluster.images import BUSYBOX

pytestmark = pytest.mark.cluster

INIT = ("--pytorch-init-image", BUSYBOX)
FAIL_ONCE = "mkdir /data/failed 2>/dev/null && exit 137; exit 0"


@pytest.fixture(scope="module")
def trainer(
    cluster: Kube, spaces: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    folder = tmp_path_factory.mktemp("trainer")
    with run_operator(Kube(cluster.kubeconfig, f"{spaces}-*"), folder, *INIT) as made:
        yield made


def test_how_jobs_end(trainer: Operator, kube: Kube) -> None:
    """Several at once: their Pods need not wait for each other."""
    kube.apply(
        claim("state"),
        training_job(
            "led", {"Chief": replicas("exit 0"), "PS": replicas(FOREVER)}, cleanPodPolicy="Running"
        ),
        training_job(
            "again", {"Worker": replicas(FAIL_ONCE, restartPolicy="ExitCode", claim="state")}
        ),
        training_job("fatal", {"Worker": replicas("exit 3", restartPolicy="ExitCode")}),
        training_job(
            "endless", {"Worker": replicas("exit 137", restartPolicy="ExitCode")}, backoffLimit=1
        ),
        training_job("late", {"Worker": replicas(FOREVER, 2)}, activeDeadlineSeconds=3),
        training_job(
            "brief",
            {"Worker": replicas("exit 0")},
            cleanPodPolicy="All",
            ttlSecondsAfterFinished=1,
        ),
    )
    led = wait_for_condition(kube, "tfjob/led", "Succeeded")
    assert [c["type"] for c in led["status"]["conditions"]][-1] == "Succeeded"
    wait_until("the PS went", lambda: list(pods_of(kube, "led")) == ["led-chief-0"])
    wait_until("its Service went", lambda: services_of(kube, "led") == ["led-chief-0"])

    late = wait_for_condition(kube, "tfjob/late", "Failed")
    assert ready(late)["reason"] == "DeadlineExceeded"
    wait_until("its Pods went", lambda: not pods_of(kube, "late"))

    fatal = wait_for_condition(kube, "tfjob/fatal", "Failed")
    assert (
        "worker 0 failed: its container tensorflow ended with status 3" in ready(fatal)["message"]
    )
    assert "restarts" not in fatal["status"]
    assert list(pods_of(kube, "fatal")) == ["fatal-worker-0"], "its log can be read"

    again = wait_for_condition(kube, "tfjob/again", "Succeeded")
    assert [each["count"] for each in again["status"]["restarts"]] == [1]
    [pod] = pods_of(kube, "again").values()
    assert again["status"]["restarts"][0]["pod"] != pod["metadata"]["uid"]
    told = wait_until("events", lambda: _told(kube, again, "TFJobSucceeded"))
    assert {"TFJobRestarting", "ExitedWithCode", "SuccessfulDeletePod"} <= set(told)
    assert told.count("SuccessfulCreatePod") == 2

    endless = wait_for_condition(kube, "tfjob/endless", "Failed")
    assert ready(endless)["reason"] == "BackoffLimitExceeded"
    wait_until("it is deleted", lambda: not kube("get", "tfjob/brief", "--ignore-not-found"))
    wait_until("its Pods, too", lambda: not pods_of(kube, "brief"))
    found = trainer.metrics()
    labels = f'framework="tensorflow",job_namespace="{kube.namespace}"'
    assert found[f"training_operator_jobs_failed_total{{{labels}}}"] == 3


def _told(kube: Kube, job: dict[str, Any], last: str) -> list[str]:
    found = reasons(kube, job)
    return found if last in found else []


TALK = """
case "$TF_CONFIG" in
*'"index":0}'*) nc -l -p 2222 > /tmp/said; grep hello /tmp/said ;;
*) until echo hello | nc talk-worker-0.$NAMESPACE.svc 2222; do sleep 0.2; done ;;
esac
"""
RENDEZVOUS = """
echo "$RANK of $WORLD_SIZE"
case $RANK in
0) nc -l -p $MASTER_PORT ;;
*) until echo $RANK | nc $MASTER_ADDR $MASTER_PORT; do sleep 0.2; done ;;
esac
"""


def test_replicas_find_each_other(trainer: Operator, kube: Kube) -> None:
    talk = replicas(TALK.replace("$NAMESPACE", kube.namespace), 2)
    master, worker = (replicas(RENDEZVOUS, kind="PyTorchJob") for _ in range(2))
    elastic = training_job("wide", {"Worker": replicas(FOREVER, kind="PyTorchJob")}, "PyTorchJob")
    elastic["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    talking = training_job("talk", {"Worker": talk})
    talking["spec"]["successPolicy"] = "AllWorkers"
    kube.apply(
        talking,
        training_job("meet", {"Master": master, "Worker": worker}, "PyTorchJob"),
        elastic,
    )
    wait_for_condition(kube, "tfjob/talk", "Succeeded")
    meet = wait_for_condition(kube, "pytorchjob/meet", "Succeeded")
    assert meet["status"]["replicaStatuses"]["Master"]["succeeded"] == 1
    assert kube("logs", "meet-master-0").splitlines() == ["0 of 2", "1"]
    wait_for_condition(kube, "pytorchjob/wide", "Running")
    kube("scale", "pytorchjob/wide", "--replicas=2")
    wait_until("it has two", lambda: len(pods_of(kube, "wide")) == 2)
    kube("scale", "pytorchjob/wide", "--replicas=1")
    wait_until("it has one", lambda: list(pods_of(kube, "wide")) == ["wide-worker-0"])


def test_a_job_is_suspended_resumed_and_deleted(trainer: Operator, kube: Kube) -> None:
    kube.apply(training_job("j", {"Worker": replicas(FOREVER, 2)}))
    wait_for_condition(kube, "tfjob/j", "Running")
    wait_until("both run", lambda: _active(kube) == 2)
    before = {pod["metadata"]["uid"] for pod in pods_of(kube, "j").values()}
    _suspend(kube, True)
    wait_for_condition(kube, "tfjob/j", "Suspended")
    wait_until("nothing is left", lambda: not pods_of(kube, "j") and not services_of(kube, "j"))
    _suspend(kube, False)
    wait_for_condition(kube, "tfjob/j", "Running")
    wait_until("both run again", lambda: _active(kube) == 2)
    pods = pods_of(kube, "j")
    assert not before & {pod["metadata"]["uid"] for pod in pods.values()}
    assert services_of(kube, "j") == sorted(pods)
    stranger = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "taken-worker-0"},
        "spec": {"ports": [{"port": 1}], "selector": {"app": "other"}},
    }
    kube.apply(stranger, training_job("taken", {"Worker": replicas(FOREVER)}))
    state = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}=NameInUse'
    kube.wait_for("tfjob/taken", state)
    kube("delete", "tfjob", "j", "taken")
    wait_until("its children went", lambda: not pods_of(kube, "j") and not services_of(kube, "j"))
    kept = kube.get("service", "taken-worker-0")
    assert kept["spec"]["selector"] == {"app": "other"}, "it belongs to somebody else"


def _suspend(kube: Kube, value: bool) -> None:
    patch = json.dumps({"spec": {"runPolicy": {"suspend": value}}})
    kube("patch", "tfjob/j", "--type=merge", "--patch", patch)


def _active(kube: Kube) -> int:
    status = kube.get("tfjob/j")["status"]
    return int(status["replicaStatuses"]["Worker"].get("active", 0))


def _valid() -> list[dict[str, Any]]:
    """Jobs in the style of upstream's samples."""
    port = {"ports": [{"containerPort": 2222, "name": "tfjob-port"}]}
    served = replicas(FOREVER, 2, restartPolicy="OnFailure")
    served["template"]["spec"]["containers"][0] |= port
    served["template"]["metadata"] = {"annotations": {"sidecar.istio.io/inject": "false"}}
    dist = training_job("dist", {"PS": served, "Worker": served, "Chief": replicas(FOREVER)})
    lower = training_job("lower", {"worker": replicas(FOREVER), "ps": replicas(FOREVER)})
    queued = training_job(
        "queued",
        {"Worker": replicas(FOREVER)},
        suspend=True,
        managedBy="kueue.x-k8s.io/multikueue",
        schedulingPolicy={"queue": "q", "minAvailable": 1, "minResources": {"cpu": "1"}},
    )
    elastic = training_job(
        "elastic",
        {"Worker": replicas(FOREVER, 2, "PyTorchJob", restartPolicy="OnFailure")},
        "PyTorchJob",
    )
    elastic["spec"]["elasticPolicy"] = {
        "rdzvBackend": "etcd",
        "rdzvHost": "etcd-service",
        "rdzvPort": 2379,
        "rdzvConf": [{"key": "timeout", "value": "30"}],
        "minReplicas": 1,
        "maxReplicas": 3,
        "maxRestarts": 100,
    }
    elastic["spec"]["nprocPerNode"] = "gpu"
    return [dist, lower, queued, elastic]


def _wrong() -> list[tuple[str, dict[str, Any]]]:
    """The field that the API server names, and the job."""
    worker = replicas(FOREVER)
    flat = {"replicas": 4, "containers": worker["template"]["spec"]["containers"]}
    main = json.loads(json.dumps(worker).replace('"tensorflow"', '"main"'))
    spec, named = "spec.tfReplicaSpecs", training_job("n", {"Worker": worker})

    def changed(**fields: Any) -> dict[str, Any]:
        return training_job("n", {"Worker": {**worker, **fields}})

    two_masters = {"Master": replicas(FOREVER, 2, "PyTorchJob")}
    return [
        (f"{spec}.Worker.containers", training_job("n", {"Worker": flat})),
        (f"{spec}[Worker].template.spec.containers", training_job("n", {"Worker": main})),
        (spec, training_job("n", {"Boss": worker})),
        (spec, training_job("n", {"Chief": worker, "Master": worker})),
        (
            f"{spec}.Worker.restartPolicy",
            training_job("n", {"Worker": {**worker, "restartPolicy": "Once"}}),
        ),
        (f"{spec}.Worker.replicas", training_job("n", {"Worker": {**worker, "replicas": "four"}})),
        ("spec.cleanPodPolicy", {**named, "spec": {**named["spec"], "cleanPodPolicy": "None"}}),
        (
            "spec.runPolicy.cleanPodPolicy",
            training_job("n", {"Worker": worker}, cleanPodPolicy="Some"),
        ),
        ("the name must begin with a letter", training_job("0n", {"Worker": worker})),
        ("the name is too long", training_job("n" * 55, {"Worker": worker})),
        ("spec.pytorchReplicaSpecs", training_job("n", two_masters, "PyTorchJob")),
    ]


def test_what_upstream_accepts_is_accepted_and_what_is_wrong_is_named(
    trainer: Operator, kube: Kube
) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": _valid()}
    kube("apply", "--dry-run=server", "--filename=-", given=json.dumps(listed))
    for field, job in _wrong():
        with pytest.raises(AssertionError) as refused:
            kube("create", "--dry-run=server", "--filename=-", given=json.dumps(job))
        assert field in str(refused.value)

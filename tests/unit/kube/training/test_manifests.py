"""The Pods and Services of training jobs are those that upstream creates."""

from typing import Any

import pytest
from tests.unit.kube.training.sample_jobs import job, pytorchjob, replicas, tfjob

from clew.kube.controller.options import Options
from clew.kube.objects import Json
from clew.kube.training.autoscalers import make_autoscaler
from clew.kube.training.job_spec import ReplicaId, parse_job
from clew.kube.training.manifests import make_pod, make_service
from clew.kube.training.pod_groups import make_pod_group


def made_pod(of: Json, type_: str = "Worker", number: int = 0, **options: Any) -> Json:
    return make_pod(parse_job(of), ReplicaId(type_, number), Options(**options))


def variables(of: Json, type_: str = "Worker", number: int = 0, **options: Any) -> dict[str, str]:
    [container, *_] = made_pod(of, type_, number, **options)["spec"]["containers"]
    return {each["name"]: each["value"] for each in container.get("env", ())}


def test_a_replica_s_pod_and_service() -> None:
    of = tfjob(Chief=1, Worker=2)
    made = made_pod(of, "Worker", 1)
    labels = {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "1",
    }
    assert made["metadata"]["name"] == "mnist-worker-1"
    assert made["metadata"]["labels"] == labels
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("TFJob", "uid-mnist", True)
    assert made["spec"]["restartPolicy"] == "Never"
    [container] = made["spec"]["containers"]
    assert container["ports"] == [{"name": "tfjob-port", "containerPort": 2222, "protocol": "TCP"}]
    service = make_service(parse_job(of), ReplicaId("Worker", 1))
    assert service["metadata"]["name"] == "mnist-worker-1"
    assert service["spec"] == {
        "clusterIP": "None",
        "selector": labels,
        "ports": [{"name": "tfjob-port", "port": 2222}],
    }
    chief = made_pod(of, "Chief")["metadata"]["labels"]
    assert chief["training.kubeflow.org/job-role"] == "master"


def test_without_a_chief_worker_0_leads() -> None:
    of = tfjob(PS=1, Worker=2)
    leads = "training.kubeflow.org/job-role"
    assert made_pod(of, "Worker", 0)["metadata"]["labels"][leads] == "master"
    assert leads not in made_pod(of, "Worker", 1)["metadata"]["labels"]
    assert leads not in made_pod(of, "PS", 0)["metadata"]["labels"]


def test_the_template_is_kept() -> None:
    worker = replicas(
        1,
        restartPolicy="ExitCode",
        pod={"restartPolicy": "Always", "nodeSelector": {"gpu": "yes"}},
        with_={"ports": [{"name": "tfjob-port", "containerPort": 3333}]},
    )
    worker["template"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    of = tfjob(Worker=worker)
    made = made_pod(of)
    assert made["metadata"]["labels"]["team"] == "a"
    assert made["metadata"]["annotations"] == {"note": "b"}
    assert made["spec"]["nodeSelector"] == {"gpu": "yes"}
    assert made["spec"]["restartPolicy"] == "Never", "ExitCode is decided by the operator"
    assert make_service(parse_job(of), ReplicaId("Worker", 0))["spec"]["ports"] == [
        {"name": "tfjob-port", "port": 3333}
    ]
    assert of["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] == "Always"


TF_CONFIG = (
    '{"cluster":{"chief":["mnist-chief-0.me.svc:2222"],"ps":["mnist-ps-0.me.svc:2222"],'
    '"worker":["mnist-worker-0.me.svc:2222","mnist-worker-1.me.svc:2222"]},'
    '"task":{"type":"chief","index":0},"environment":"cloud"}'
)


def test_tf_config_is_upstream_s_to_the_byte() -> None:
    of = tfjob(Worker=2, PS=1, Chief=1)
    assert variables(of, "Chief") == {"TF_CONFIG": TF_CONFIG}
    worker = variables(of, "Worker", 1)["TF_CONFIG"]
    assert worker.endswith('"task":{"type":"worker","index":1},"environment":"cloud"}')


def test_types_may_be_written_in_any_case() -> None:
    assert variables(tfjob(worker=2, ps=1, CHIEF=1), "Chief") == {"TF_CONFIG": TF_CONFIG}


def test_tf_config_of_an_evaluator_and_in_another_domain() -> None:
    found = variables(tfjob(Evaluator=1, Worker=1), custom_cluster_domain="cluster.local")
    assert found["TF_CONFIG"] == (
        '{"cluster":{"evaluator":["mnist-evaluator-0.me.svc.cluster.local:2222"],'
        '"worker":["mnist-worker-0.me.svc.cluster.local:2222"]},'
        '"task":{"type":"worker","index":0},"environment":"cloud"}'
    )


def test_one_process_needs_no_tf_config() -> None:
    assert variables(tfjob(Worker=1)) == {}


def test_tf_config_of_dynamic_workers_names_only_its_own() -> None:
    of = job("TFJob", {"PS": replicas(2), "Worker": replicas(2)}, enableDynamicWorker=True)
    assert variables(of, "Worker", 1)["TF_CONFIG"] == (
        '{"cluster":{"worker":{"1":"mnist-worker-1.me.svc:2222"},'
        '"ps":["mnist-ps-0.me.svc:2222","mnist-ps-1.me.svc:2222"]},'
        '"task":{"type":"worker","index":1}}'
    )
    assert variables(of, "PS", 1)["TF_CONFIG"] == (
        '{"cluster":{"worker":{},"ps":["mnist-ps-1.me.svc:2222"]},"task":{"type":"ps","index":1}}'
    )


def test_a_pytorch_worker_s_variables() -> None:
    of = pytorchjob(Master=1, Worker=2)
    common = {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "mnist-master-0",
        "PET_MASTER_ADDR": "mnist-master-0",
        "MASTER_PORT": "23456",
        "PET_MASTER_PORT": "23456",
        "WORLD_SIZE": "3",
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "auto",
    }
    assert variables(of, "Master") == {**common, "RANK": "0", "PET_NODE_RANK": "0"}
    assert variables(of, "Worker", 1) == {**common, "RANK": "2", "PET_NODE_RANK": "2"}


def test_processes_per_node_count_for_the_world() -> None:
    types = {"Master": replicas(1, "pytorch"), "Worker": replicas(1, "pytorch")}
    found = variables(job("PyTorchJob", types, nprocPerNode="4"))
    assert (found["WORLD_SIZE"], found["PET_NPROC_PER_NODE"]) == ("8", "4")
    found = variables(job("PyTorchJob", types, nprocPerNode="gpu"))
    assert (found["WORLD_SIZE"], found["PET_NPROC_PER_NODE"]) == ("2", "gpu")
    assert variables(job("PyTorchJob", types, nprocPerNode="9" * 5000))["WORLD_SIZE"] == "2"


def test_an_elastic_job_s_variables() -> None:
    elastic = {
        "minReplicas": 1,
        "maxReplicas": 3,
        "maxRestarts": 5,
        "rdzvId": "a",
        "rdzvConf": [{"key": "timeout", "value": "30"}, {"key": "x", "value": "y"}],
    }
    of = job("PyTorchJob", {"Worker": replicas(2, "pytorch")}, elasticPolicy=elastic)
    assert variables(of) == {
        "PYTHONUNBUFFERED": "1",
        "PET_NPROC_PER_NODE": "auto",
        "PET_RDZV_ENDPOINT": "mnist-worker-0:23456",
        "PET_RDZV_BACKEND": "c10d",
        "PET_NNODES": "1:3",
        "PET_MAX_RESTARTS": "5",
        "PET_RDZV_ID": "a",
        "PET_RDZV_CONF": "timeout=30,x=y",
    }


def test_pytorch_workers_wait_for_their_master() -> None:
    of = pytorchjob(Master=1, Worker=1)
    [init] = made_pod(of, pytorch_init_image="small:1")["spec"]["initContainers"]
    assert (init["name"], init["image"]) == ("init-pytorch", "small:1")
    assert "nslookup mnist-master-0" in init["command"][-1]
    assert "initContainers" not in made_pod(of, "Master")["spec"]
    assert "initContainers" not in made_pod(pytorchjob(Worker=2))["spec"]


def test_in_a_restricted_namespace_a_pod_may_do_little() -> None:
    of = parse_job(pytorchjob(Master=1, Worker=1))
    made = make_pod(of, ReplicaId("Worker", 0), Options(), restricted=True)["spec"]
    assert made["securityContext"]["runAsNonRoot"]
    for container in (*made["containers"], *made["initContainers"]):
        assert container["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize("scheduler", ["volcano", "scheduler-plugins-scheduler"])
def test_a_gang_is_scheduled_together(scheduler: str) -> None:
    wanted = {"minAvailable": 2, "queue": "q", "priorityClass": "high", "scheduleTimeoutSeconds": 9}
    of = tfjob(Worker=3, policy={"schedulingPolicy": wanted})
    group = make_pod_group(parse_job(of), Options(gang_scheduler=scheduler))
    made = made_pod(of, gang_scheduler=scheduler)
    assert group and group["metadata"]["name"] == "mnist"
    assert made["spec"]["schedulerName"] == scheduler
    annotations, labels = made["metadata"]["annotations"], made["metadata"]["labels"]
    if scheduler == "volcano":
        assert group["apiVersion"] == "scheduling.volcano.sh/v1beta1"
        assert group["spec"] == {"minMember": 2, "queue": "q", "priorityClassName": "high"}
        assert annotations["scheduling.k8s.io/group-name"] == "mnist"
    else:
        assert group["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
        assert group["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 9}
        assert labels["scheduling.x-k8s.io/pod-group"] == "mnist"


def test_without_a_gang_scheduler_there_is_no_group() -> None:
    assert make_pod_group(parse_job(tfjob(Worker=3)), Options()) is None
    assert "schedulerName" not in made_pod(tfjob(Worker=3))["spec"]


def test_an_elastic_job_with_metrics_has_an_autoscaler() -> None:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    elastic = {"minReplicas": 1, "maxReplicas": 4, "metrics": [metric]}
    of = job("PyTorchJob", {"Worker": replicas(2, "pytorch")}, elasticPolicy=elastic)
    made = make_autoscaler(parse_job(of))
    assert made and made["spec"]["scaleTargetRef"]["kind"] == "PyTorchJob"
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (1, 4)
    assert make_autoscaler(parse_job(pytorchjob(Worker=2))) is None

"""The Pod and the Service of one replica, as upstream writes them."""

import copy

from clew.kube.controller.model import make_manifest, owner_reference
from clew.kube.controller.options import Options
from clew.kube.objects import Json, annotations_of, labels_of
from clew.kube.resources.pod_security import restrict
from clew.kube.training import pod_groups, pytorch, tensorflow
from clew.kube.training.job_spec import (
    INDEX_LABEL,
    ROLE_LABEL,
    ReplicaId,
    TrainingJob,
    main_container,
)


def make_pod(
    job: TrainingJob, replica: ReplicaId, options: Options, *, restricted: bool = False
) -> Json:
    spec = job.replicas[replica.type]
    pod = copy.deepcopy(spec.pod)
    pod["restartPolicy"] = "Never" if spec.restart_policy == "ExitCode" else spec.restart_policy
    _add_port(pod, job)
    # The last lines of its log, in the status of the job, if it says nothing else before it fails.
    main_container(pod, job.framework).setdefault(
        "terminationMessagePolicy", "FallbackToLogsOnError"
    )
    _add_environment(pod, job, replica, options)
    if replica.type == "Worker" and job.kind == "PyTorchJob" and "Master" in job.replicas:
        waiting = pytorch.wait_for_master(job, options.pytorch_init_image, options.cluster_domain)
        pod["initContainers"] = [*(pod.get("initContainers") or ()), waiting]
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": job.replica_name(replica),
            "namespace": job.namespace,
            "labels": {**labels_of(spec.template), **_labels(job, replica), **_role(job, replica)},
            "annotations": dict(annotations_of(spec.template)),
            "ownerReferences": [owner_reference(job.resource)],
        },
        "spec": restrict(pod) if restricted else pod,
    }
    return pod_groups.join(made, job, replica, options)


def _labels(job: TrainingJob, replica: ReplicaId) -> dict[str, str]:
    return {**job.labels(replica.type), INDEX_LABEL: str(replica.number)}


def _role(job: TrainingJob, replica: ReplicaId) -> dict[str, str]:
    """The label of the replica that leads."""
    leads = (
        replica.type == job.leader if job.leader is not None else replica == ReplicaId("Worker", 0)
    )
    return {ROLE_LABEL: "master"} if leads else {}


def _add_port(pod: Json, job: TrainingJob) -> None:
    main, own = main_container(pod, job.framework), job.framework
    ports = main.get("ports") or []
    if all(port.get("name") != own.port_name for port in ports):
        ports = [*ports, {"name": own.port_name, "containerPort": own.port, "protocol": "TCP"}]
    main["ports"] = ports


def _add_environment(pod: Json, job: TrainingJob, replica: ReplicaId, options: Options) -> None:
    if job.kind == "TFJob":
        main = main_container(pod, job.framework)
        variables = tensorflow.environment(job, replica, options.custom_cluster_domain)
        if variables:
            main["env"] = [*(main.get("env") or ()), *variables]
        return
    for container in pod["containers"]:
        variables = pytorch.environment(job, replica)
        container["env"] = [*(container.get("env") or ()), *variables]


def make_service(job: TrainingJob, replica: ReplicaId) -> Json:
    """Headless: its name is that of the Pod, for the other replicas."""
    pod = copy.deepcopy(job.replicas[replica.type].pod)
    _add_port(pod, job)
    ports = [
        {"name": port["name"], "port": port["containerPort"]}
        for port in main_container(pod, job.framework)["ports"]
        if port.get("name")
    ]
    labels = _labels(job, replica)
    spec = {"clusterIP": "None", "selector": labels, "ports": ports}
    return make_manifest(job.resource, "v1", "Service", job.replica_name(replica), spec, labels)

"""Gang scheduling: all Pods of a job are scheduled together, or none.

A scheduler that can do so defines the kind PodGroup: Volcano, or a kube-scheduler with the
co-scheduling plugin. Which of them there is, the operator is told; without one, Pods are scheduled
one by one.
"""

from clew.kube.controller.model import make_manifest
from clew.kube.controller.options import Options
from clew.kube.objects import Json
from clew.kube.training.job_spec import ReplicaId, TrainingJob

VOLCANO = "volcano"
"""The name of its scheduler; any other name is that of a kube-scheduler with the plugin."""

_VOLCANO_GROUP = "scheduling.k8s.io/group-name"
_VOLCANO_TASK = "volcano.sh/task-spec"
_PLUGIN_GROUP = "scheduling.x-k8s.io/pod-group"


def api_version(scheduler: str) -> tuple[str, str]:
    """The group and the version of the scheduler's PodGroup."""
    if scheduler == VOLCANO:
        return "scheduling.volcano.sh", "v1beta1"
    return "scheduling.x-k8s.io", "v1alpha1"


def make_pod_group(job: TrainingJob, options: Options) -> Json | None:
    """None: Pods are scheduled one by one."""
    if not (scheduler := options.gang_scheduler):
        return None
    policy = job.policy.scheduling
    spec: Json = {"minMember": int(policy.get("minAvailable") or job.total)}
    if least := policy.get("minResources"):
        spec["minResources"] = dict(least)
    if scheduler == VOLCANO:
        if queue := policy.get("queue"):
            spec["queue"] = queue
        if priority := policy.get("priorityClass"):
            spec["priorityClassName"] = priority
    elif (patience := policy.get("scheduleTimeoutSeconds")) is not None:
        spec["scheduleTimeoutSeconds"] = int(patience)
    api = "/".join(api_version(scheduler))
    return make_manifest(job.resource, api, "PodGroup", job.name, spec, {})


def join(pod: Json, job: TrainingJob, replica: ReplicaId, options: Options) -> Json:
    """The Pod as a member of the group. A Pod that names its scheduler keeps it."""
    if not (scheduler := options.gang_scheduler):
        return pod
    pod["spec"].setdefault("schedulerName", scheduler)
    metadata = pod["metadata"]
    if scheduler == VOLCANO:
        metadata["annotations"][_VOLCANO_GROUP] = job.name
        metadata["annotations"][_VOLCANO_TASK] = replica.type.lower()
    else:
        metadata["labels"][_PLUGIN_GROUP] = job.name
    return pod

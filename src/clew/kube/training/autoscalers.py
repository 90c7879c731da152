"""The autoscaler of an elastic PyTorchJob: it changes the number of workers by their metrics."""

from clew.kube.controller.model import make_manifest
from clew.kube.objects import Json
from clew.kube.training.job_spec import TrainingJob


def make_autoscaler(job: TrainingJob) -> Json | None:
    """None: the job names no metrics."""
    policy = job.elastic_policy
    if job.kind != "PyTorchJob" or not policy or not policy.get("metrics"):
        return None
    workers = job.replicas["Worker"].count
    spec = {
        "scaleTargetRef": {
            "apiVersion": job.resource["apiVersion"],
            "kind": job.kind,
            "name": job.name,
        },
        "minReplicas": int(policy.get("minReplicas") or workers),
        "maxReplicas": int(policy.get("maxReplicas") or workers),
        "metrics": list(policy["metrics"]),
    }
    return make_manifest(
        job.resource, "autoscaling/v2", "HorizontalPodAutoscaler", job.name, spec, {}
    )

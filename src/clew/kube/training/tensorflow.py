"""TF_CONFIG: by it the processes of a distributed TensorFlow find each other.

The value is what upstream writes, to the byte: its keys in the order of Go's structs, the types of
the cluster sorted.
"""

import json

from clew.kube.objects import Json
from clew.kube.training.job_spec import ReplicaId, TrainingJob, port_of


def environment(job: TrainingJob, replica: ReplicaId, domain: str) -> list[Json]:
    """Nothing for a job of one process. `domain` follows the names of Services."""
    if job.total == 1:
        return []
    return [{"name": "TF_CONFIG", "value": tf_config(job, replica, domain)}]


def tf_config(job: TrainingJob, replica: ReplicaId, domain: str = "") -> str:
    suffix = f".{domain}" if domain else ""
    cluster = {
        type_.lower(): [
            f"{job.replica_name(ReplicaId(type_, index))}.{job.namespace}.svc{suffix}"
            f":{port_of(job, type_)}"
            for index in range(job.replicas[type_].count)
        ]
        for type_ in sorted(job.replicas, key=str.lower)
    }
    config: Json = {
        "cluster": cluster,
        "task": {"type": replica.type.lower(), "index": replica.number},
        "environment": "cloud",
    }
    if job.dynamic_workers:
        config["cluster"] = _sparse(cluster, replica)
        del config["environment"]
    return json.dumps(config, separators=(",", ":"))


def _sparse(cluster: dict[str, list[str]], replica: ReplicaId) -> Json:
    """Only what a process must know of the others, so that workers may come and go."""
    if replica.type == "PS":
        return {"worker": {}, "ps": [cluster["ps"][replica.number]]}
    if replica.type == "Worker":
        own = {str(replica.number): cluster["worker"][replica.number]}
        return {"worker": own, "ps": cluster.get("ps")}
    return {"worker": {}, "ps": []}

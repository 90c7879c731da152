"""The variables by which the processes of a distributed PyTorch find each other.

torchrun reads those that begin with PET_, a program that was started without it the others. RANK
is that of the Pod: a program with several processes for each Pod needs torchrun.
"""

import re
from collections.abc import Mapping

from clew.kube.objects import Json, Object
from clew.kube.training.job_spec import ReplicaId, TrainingJob, port_of

_INIT_COMMAND = (
    "for i in $(seq 1 100); do nslookup {master} >/dev/null 2>&1 && exit 0;"
    ' echo "waiting for {master}"; sleep 2; done; exit 1'
)
"""Until the name of the master is known, which is when the master runs. It is the whole name: the
nslookup of a recent busybox fails if one of the domains to search does not know a short one."""

_COUNT = re.compile(r"[0-9]{1,9}")
"""The schema allows any number of digits, of which `int` refuses many."""


def environment(job: TrainingJob, replica: ReplicaId) -> list[Json]:
    return [
        {"name": name, "value": value}
        for name, value in {
            "PYTHONUNBUFFERED": "1",
            **_of_master(job, replica),
            "PET_NPROC_PER_NODE": _processes_per_node(job),
            **_of_nodes(job),
        }.items()
    ]


def _of_master(job: TrainingJob, replica: ReplicaId) -> Mapping[str, str]:
    if "Master" not in job.replicas:
        return {}
    address, port = job.replica_name(ReplicaId("Master", 0)), str(port_of(job, "Master"))
    rank = str(replica.number + (replica.type == "Worker"))
    wanted = _processes_per_node(job)
    processes = int(wanted) if _COUNT.fullmatch(wanted) else 1
    return {
        "MASTER_PORT": port,
        "PET_MASTER_PORT": port,
        "MASTER_ADDR": address,
        "PET_MASTER_ADDR": address,
        "WORLD_SIZE": str(job.total * processes),
        "RANK": rank,
        "PET_NODE_RANK": rank,
    }


def _processes_per_node(job: TrainingJob) -> str:
    older = (job.elastic_policy or {}).get("nProcPerNode")
    return str(job.spec.get("nprocPerNode") or older or "auto")


def _of_nodes(job: TrainingJob) -> Mapping[str, str]:
    if (policy := job.elastic_policy) is None:
        return {"PET_NNODES": str(job.total)}
    host = policy.get("rdzvHost") or job.replica_name(ReplicaId("Worker", 0))
    port = policy.get("rdzvPort") or port_of(job, "Worker")
    made = {
        "PET_RDZV_ENDPOINT": f"{host}:{port}",
        "PET_RDZV_BACKEND": str(policy.get("rdzvBackend") or "c10d"),
        "PET_NNODES": _count_of_nodes(job, policy),
    }
    for name, field in {"PET_MAX_RESTARTS": "maxRestarts", "PET_RDZV_ID": "rdzvId"}.items():
        if policy.get(field) is not None:
            made[name] = str(policy[field])
    if pairs := policy.get("rdzvConf"):
        made["PET_RDZV_CONF"] = ",".join(
            f"{each.get('key', '')}={each.get('value', '')}" for each in pairs
        )
    if policy.get("standalone"):
        made["PET_STANDALONE"] = ""
    return made


def _count_of_nodes(job: TrainingJob, policy: Object) -> str:
    least, most = policy.get("minReplicas"), policy.get("maxReplicas")
    workers = job.replicas["Worker"].count
    if least is None and most is None:
        return str(workers)
    return f"{workers if least is None else least}:{workers if most is None else most}"


def wait_for_master(job: TrainingJob, image: str, domain: str) -> Json:
    """The init container of a worker. It has requests and limits, which a quota may demand."""
    master = f"{job.replica_name(ReplicaId('Master', 0))}.{job.namespace}.svc.{domain}"
    return {
        "name": "init-pytorch",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _INIT_COMMAND.format(master=master)],
        "resources": {
            "requests": {"cpu": "50m", "memory": "10Mi"},
            "limits": {"cpu": "100m", "memory": "20Mi"},
        },
    }

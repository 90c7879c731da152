"""Whether a job has succeeded, or can no longer: from its Pods, the time and its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clew.kube.training.failures import list_failures
from clew.kube.training.job_spec import ReplicaId, TrainingJob
from clew.kube.training.replicas import ReplicaPod


@dataclass(frozen=True)
class Outcome:
    succeeded: bool
    reason: str
    """Of the condition Ready, from which the clean-up knows of a limit."""
    message: str


LIMITS = ("DeadlineExceeded", "BackoffLimitExceeded")
"""A job that exceeded one is stopped: its running Pods go, whatever its clean-pod policy."""


def find_outcome(
    job: TrainingJob,
    found: Mapping[ReplicaId, ReplicaPod],
    *,
    fatal: Sequence[ReplicaPod],
    failures: int,
    started: datetime,
    now: datetime,
) -> Outcome | None:
    """None: it goes on. `fatal` failed and are not started again; `failures` counts all. A limit
    does not undo a success: the operator may have been away when it came."""
    if job.kind == "PyTorchJob" and _all_succeeded(job, found, "Master"):
        return _success(job)
    if fatal:
        return Outcome(False, "Failed", f"{list_failures(fatal)}.")
    if _has_succeeded(job, found):
        return _success(job)
    limit = job.policy.backoff_limit
    if limit is not None and failures > limit:
        return Outcome(
            False,
            "BackoffLimitExceeded",
            f"Its replicas failed {failures} times; its backoffLimit is {limit}.",
        )
    if (end := deadline(job, started)) and now >= end:
        text = f"It ran for longer than its activeDeadlineSeconds: {job.policy.deadline}."
        return Outcome(False, "DeadlineExceeded", text)
    return None


def deadline(job: TrainingJob, started: datetime) -> datetime | None:
    seconds = job.policy.deadline
    return None if seconds is None else started + timedelta(seconds=seconds)


def _success(job: TrainingJob) -> Outcome:
    return Outcome(True, "Succeeded", f"{job.kind} {job.namespace}/{job.name} has succeeded.")


def _has_succeeded(job: TrainingJob, found: Mapping[ReplicaId, ReplicaPod]) -> bool:
    if job.leader is not None:
        return _all_succeeded(job, found, job.leader)
    if _all_succeeded(job, found, "Worker"):
        return True
    if job.kind == "PyTorchJob":
        return job.elastic_policy is not None and any(
            each.has_succeeded for each in found.values() if each.replica.type == "Worker"
        )
    first = found.get(ReplicaId("Worker", 0))
    return first is not None and first.has_succeeded and not job.all_workers_decide


def _all_succeeded(job: TrainingJob, found: Mapping[ReplicaId, ReplicaPod], type_: str) -> bool:
    if type_ not in job.replicas:
        return False
    count = job.replicas[type_].count
    pods = [found.get(ReplicaId(type_, index)) for index in range(count)]
    return count > 0 and all(pod is not None and pod.has_succeeded for pod in pods)

"""Which failures end a job, which Pods start again, and when.

A Pod that failed is deleted and created again under its name, after a delay that doubles. How often
that happened is in the status, with the uid of the Pod that was counted last: the status is written
before the Pod is deleted, so a failure counts once, also if the operator is killed in between.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clew.kube.objects import Json, Object, dig
from clew.kube.training.job_spec import ReplicaId, TrainingJob
from clew.kube.training.replicas import ReplicaPod

FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=1), timedelta(minutes=5)
MAX_SAID = 300
"""Characters of what a container said last."""
RETRYABLE = 128
"""A program that a signal ended has this status or a higher one."""


@dataclass(frozen=True)
class Restarts:
    """Of one replica: how often it failed in Pods that were, or will be, replaced."""

    count: int
    pod: str
    """The uid of the Pod that was counted last."""


def read_restarts(status: Object) -> dict[str, Restarts]:
    """By replica, from the status of a job."""
    return {
        str(each.get("replica")): Restarts(int(each.get("count") or 0), str(each.get("pod") or ""))
        for each in status.get("restarts") or ()
    }


def write_restarts(restarts: Mapping[str, Restarts]) -> list[Json]:
    return [
        {"replica": replica, "count": each.count, "pod": each.pod}
        for replica, each in sorted(restarts.items())
    ]


def is_permanent(job: TrainingJob, found: ReplicaPod) -> bool:
    """Whether a Pod that failed is not started again. A Pod that ended without a status of its
    container, because it was evicted say, is started again under ExitCode."""
    policy = job.replicas[found.replica.type].restart_policy
    if policy == "ExitCode":
        return found.exit_code is not None and 0 < found.exit_code < RETRYABLE
    return policy == "Never"


def count_restarts(
    before: Mapping[str, Restarts], retried: Iterable[ReplicaPod]
) -> dict[str, Restarts]:
    """With the Pods that failed and are started again, each counted once."""
    counted = dict(before)
    for found in retried:
        known = before.get(str(found.replica), Restarts(0, ""))
        if known.pod != found.uid:
            counted[str(found.replica)] = Restarts(known.count + found.failures, found.uid)
    return counted


def count_failures(restarts: Mapping[str, Restarts], pods: Iterable[ReplicaPod]) -> int:
    """All failures of a job: in Pods that were replaced, and in those that there are."""
    counted = {each.pod for each in restarts.values()}
    return sum(each.count for each in restarts.values()) + sum(
        found.failures for found in pods if found.uid not in counted and not found.is_leaving
    )


def restart_time(found: ReplicaPod, restarts: Mapping[str, Restarts], now: datetime) -> datetime:
    """When the Pod is replaced: at once for the first time, later and later then."""
    times = restarts[str(found.replica)].count - 1
    if times < 1:
        return now
    delay = min(FIRST_DELAY * float(2 ** min(times - 1, 20)), LONGEST_DELAY)
    return (found.ended or now) + delay


def describe_failure(found: ReplicaPod) -> str:
    """Why a Pod failed, in one sentence."""
    end = found.end
    if not end:
        message = str(
            dig(found.pod, "status", "message") or dig(found.pod, "status", "reason") or ""
        )
        return f"{found.replica} failed: {message or 'its Pod ended for an unknown reason'}"
    if end.get("reason") == "OOMKilled":
        return f"{found.replica} failed: it used more memory than its limit"
    text = f"{found.replica} failed: its container {found.container} ended with status"
    status = f"{text} {found.exit_code}"
    said = str(end.get("message") or "").strip().rpartition("\n")[2]
    return f"{status}: {said[:MAX_SAID]}" if said else status


def list_failures(failed: Sequence[ReplicaPod]) -> str:
    """The first failure, and how many more there are."""
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{describe_failure(failed[0])}{more}"


def missing_replicas(job: TrainingJob, found: Mapping[ReplicaId, ReplicaPod]) -> list[ReplicaId]:
    """Those that have no Pod; one that is being deleted still has its name."""
    return [each for each in job.list_replicas() if each not in found]

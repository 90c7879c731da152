"""The status of a training job: conditions, counts of replicas, and why one does not run."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from clew.kube.controller import status_reasons
from clew.kube.controller.model import Event
from clew.kube.controller.status_reasons import Reason, ready_condition
from clew.kube.objects import Json, Object, dig, format_time
from clew.kube.training.conditions import READY
from clew.kube.training.failures import Restarts, describe_failure, restart_time, write_restarts
from clew.kube.training.job_spec import ReplicaId, TrainingJob
from clew.kube.training.replicas import ReplicaPod

SUSPENDED = Reason("Suspended", "It is suspended. Set spec.runPolicy.suspend to false to go on.")


def make_status(
    job: TrainingJob,
    conditions: Sequence[Object],
    reason: Reason,
    now: datetime,
    *,
    replicas: Mapping[str, Object],
    restarts: Mapping[str, Restarts],
    started: str | None,
    completed: str | None = None,
) -> Json:
    """The same as before if nothing but the time changed."""
    ready = ready_condition(job.resource, reason, format_time(now))
    made: Json = {
        "conditions": [ready, *(dict(each) for each in conditions)],
        "replicaStatuses": {type_: dict(each) for type_, each in replicas.items()},
    }
    if restarts:
        made["restarts"] = write_restarts(restarts)
    if started:
        made["startTime"] = started
    if completed:
        made["completionTime"] = completed
    before = dict(job.resource.get("status") or {})
    reconciled = before.pop("lastReconcileTime", None)
    made["lastReconcileTime"] = reconciled if made == before and reconciled else format_time(now)
    return made


def own_conditions(status: Object) -> list[Json]:
    """Upstream's conditions of a status."""
    return [dict(each) for each in status.get("conditions") or () if each.get("type") != READY]


def count_replicas(job: TrainingJob, found: Iterable[ReplicaPod]) -> dict[str, Json]:
    """By type; a count of 0 is left out, as upstream does."""
    pods = [each for each in found if not each.is_leaving]
    counted = {}
    for type_ in job.replicas:
        own = [each for each in pods if each.replica.type == type_]
        counts = {
            "active": sum(each.is_running for each in own),
            "succeeded": sum(each.has_succeeded for each in own),
            "failed": sum(each.has_failed for each in own),
        }
        labels = job.labels(type_)
        selector = ",".join(f"{name}={labels[name]}" for name in sorted(labels))
        counted[type_] = {**{k: n for k, n in counts.items() if n}, "selector": selector}
    return counted


def end_counts(counts: Mapping[str, Object], *, succeeded: bool) -> dict[str, Json]:
    """Of a job that has ended: of one that succeeded, no replica is active any more."""
    made = {type_: dict(each) for type_, each in counts.items()}
    for each in made.values():
        if succeeded and (active := each.pop("active", 0)):
            each["succeeded"] = each.get("succeeded", 0) + active
    return made


def explain(
    job: TrainingJob,
    found: Mapping[ReplicaId, ReplicaPod],
    events: Sequence[Event],
    restarts: Mapping[str, Restarts],
    now: datetime,
) -> Reason:
    """Why not all replicas run; of several causes, one that is not just a start."""
    causes = [
        (replica, cause)
        for replica in job.list_replicas()
        if (cause := _explain_replica(replica, found.get(replica), events, restarts, now))
    ]
    if not causes:
        return status_reasons.RUNNING
    causes.sort(key=lambda each: each[1].name in ("Starting", "NotReady"))
    replica, cause = causes[0]
    count = f"{len(causes)} of {job.total} replicas do not run. " if job.total > 1 else ""
    return Reason(cause.name, f"{count}{str(replica).capitalize()}: {cause.text}")


def _explain_replica(
    replica: ReplicaId,
    found: ReplicaPod | None,
    events: Sequence[Event],
    restarts: Mapping[str, Restarts],
    now: datetime,
) -> Reason | None:
    """None: it runs, or has succeeded."""
    if found is None:
        return status_reasons.STARTING
    if found.has_succeeded:
        return None
    if found.has_failed and str(replica) not in restarts:
        return Reason("Failed", f"{describe_failure(found)}.")
    if found.has_failed:
        at = format_time(restart_time(found, restarts, now))
        times = restarts[str(replica)].count
        text = f"{describe_failure(found)}. It failed {times} times, and starts again at {at}."
        return Reason("Restarting", text)
    if (init := _running_init_container(found.pod)) is not None:
        return Reason("Starting", f"Its init container {init} runs.")
    cause = status_reasons.reason_of_pod(found.pod, events, stopped=False)
    return None if cause is status_reasons.RUNNING else cause


def _running_init_container(pod: Object) -> str | None:
    """The container that must end before those that train start; None: there is none."""
    if dig(pod, "status", "phase") != "Pending":
        return None
    init = dig(pod, "status", "initContainerStatuses") or ()
    return next((str(c.get("name")) for c in init if dig(c, "state", "running")), None)

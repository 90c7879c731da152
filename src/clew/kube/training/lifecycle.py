"""From a training job and its Pods to what is created, deleted and written.

A job runs, is suspended, or has ended; each is decided from what there is now, whatever happened
before. What a Pod is to do is fixed when it is created: an edit of the template reaches the Pods
that are created later.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from clew.kube.controller.model import Child
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Object, condition_of, format_time, parse_time
from clew.kube.training import conditions as known
from clew.kube.training.autoscalers import make_autoscaler
from clew.kube.training.conditions import is_finished, is_true, set_condition
from clew.kube.training.failures import (
    count_failures,
    count_restarts,
    is_permanent,
    list_failures,
    missing_replicas,
    read_restarts,
    restart_time,
)
from clew.kube.training.job_events import list_events
from clew.kube.training.job_spec import MANAGER, ReplicaId, TrainingJob, parse_job
from clew.kube.training.job_status import (
    SUSPENDED,
    count_replicas,
    end_counts,
    explain,
    make_status,
    own_conditions,
)
from clew.kube.training.manifests import make_pod, make_service
from clew.kube.training.model import JobDecision, JobState
from clew.kube.training.outcome import LIMITS, Outcome, deadline, find_outcome
from clew.kube.training.pod_groups import make_pod_group
from clew.kube.training.replicas import ReplicaPod, collect_replicas

Found = Mapping[ReplicaId, ReplicaPod]

_MOST_TEXT = 2 << 20
"""Characters of the templates that one decision copies: a template may have a megabyte, and the
memory of the operator is that of all users."""


def decide(resource: Object, state: JobState, options: Options) -> JobDecision:
    job = parse_job(resource)
    status = dict(resource.get("status") or {})
    if job.policy.manager != MANAGER:
        return JobDecision(status)
    found = collect_replicas(job, state.pods)
    if is_finished(own_conditions(status)):
        return _after_end(job, state, found, status)
    if job.fault:
        return _refuse(job, state, status)
    if job.policy.suspend:
        return _suspend(job, state, found, status)
    return _run(job, state, found, status, options)


def _refuse(job: TrainingJob, state: JobState, status: Json) -> JobDecision:
    """Nothing is created of it; a correction can still make it run."""
    made = make_status(
        job,
        own_conditions(status),
        Reason("InvalidSpec", job.fault),
        state.now,
        replicas={},
        restarts={},
        started=None,
    )
    return JobDecision(made)


def _created(job: TrainingJob, status: Json, now: datetime) -> list[Json]:
    return set_condition(
        own_conditions(status),
        known.CREATED,
        reason=f"{job.kind}Created",
        message=f"{job.kind} {job.name} is created.",
        now=now,
    )


def _suspend(job: TrainingJob, state: JobState, found: Found, status: Json) -> JobDecision:
    """Pods that succeeded stay: their replicas have nothing more to do."""
    conditions = set_condition(
        _created(job, status, state.now),
        known.SUSPENDED,
        reason=f"{job.kind}Suspended",
        message=f"{job.kind} {job.name} is suspended.",
        now=state.now,
    )
    going = [each for each in found.values() if not each.has_succeeded and not each.is_leaving]
    made = make_status(
        job,
        conditions,
        SUSPENDED,
        state.now,
        replicas=count_replicas(job, found.values()),
        restarts=read_restarts(status),
        started=status.get("startTime"),
    )
    return JobDecision(
        made,
        delete_pods=tuple(going),
        delete_children=tuple(each for each in state.children.values() if not each.deleting),
        events=list_events(job, conditions, (), state.now),
    )


def _run(
    job: TrainingJob, state: JobState, found: Found, status: Json, options: Options
) -> JobDecision:
    now = state.now
    conditions = _created(job, status, now)
    resumed = is_true(conditions, known.SUSPENDED)
    if resumed:
        conditions = set_condition(
            conditions,
            known.SUSPENDED,
            status="False",
            reason=f"{job.kind}Resumed",
            message=f"{job.kind} {job.name} is resumed.",
            now=now,
        )
    started = (None if resumed else parse_time(status.get("startTime"))) or now
    wanted = set(job.list_replicas())
    own = {replica: each for replica, each in found.items() if replica in wanted}
    failed = [each for each in own.values() if each.has_failed]
    retried = [each for each in failed if not is_permanent(job, each)]
    restarts = count_restarts(read_restarts(status), retried)
    outcome = find_outcome(
        job,
        own,
        fatal=[each for each in failed if each not in retried and not _may_fail(job, each)],
        failures=count_failures(restarts, own.values()),
        started=started,
        now=now,
    )
    conditions = _say_running(job, conditions, own, retried, now)
    counts = count_replicas(job, own.values())
    status_now = make_status(
        job,
        conditions,
        explain(job, own, state.events, restarts, now),
        now,
        replicas=counts,
        restarts=restarts,
        started=format_time(started),
    )
    if outcome:
        return _end(job, state, found, status_now, outcome)
    due = {each: restart_time(each, restarts, now) for each in retried}
    going = [each for each, at in due.items() if at <= now]
    going += [e for replica, e in found.items() if replica not in wanted and not e.is_leaving]
    times = [*(at for at in due.values() if at > now), deadline(job, started)]
    return JobDecision(
        status_now,
        pods=tuple(
            make_pod(job, each, options, restricted=state.restricted)
            for each in _first(job, missing_replicas(job, found))
        ),
        services=tuple(
            make_service(job, each)
            for each in _first(
                job,
                (
                    each
                    for each in job.list_replicas()
                    if ("Service", job.replica_name(each)) not in state.children
                ),
            )
        ),
        others=tuple(
            each
            for each in (make_pod_group(job, options), make_autoscaler(job))
            if each and (each["kind"], job.name) not in state.children
        ),
        delete_pods=tuple(going),
        delete_children=_surplus_services(job, state),
        events=list_events(job, conditions, failed, now),
        recheck=min((at for at in times if at), default=None),
    )


def _first(job: TrainingJob, missing: Iterable[ReplicaId]) -> Iterator[ReplicaId]:
    """Those to create now, at least one: when they are there, the others are."""
    sizes = {type_: len(json.dumps(spec.template)) for type_, spec in job.replicas.items()}
    room = _MOST_TEXT
    for replica in missing:
        yield replica
        room -= sizes[replica.type]
        if room < 0:
            return


def _may_fail(job: TrainingJob, found: ReplicaPod) -> bool:
    """With dynamic workers, the others go on without one that failed."""
    return job.kind == "TFJob" and job.dynamic_workers and found.replica.type == "Worker"


def _say_running(
    job: TrainingJob,
    conditions: list[Json],
    own: Found,
    retried: list[ReplicaPod],
    now: datetime,
) -> list[Json]:
    leaders = {job.leader or "Worker"} if job.kind == "TFJob" else {"Master", "Worker"}
    if retried:
        return set_condition(
            conditions,
            known.RESTARTING,
            reason=f"{job.kind}Restarting",
            message=f"{list_failures(retried)}; it starts again.",
            now=now,
        )
    if any(each.is_running and each.replica.type in leaders for each in own.values()):
        return set_condition(
            conditions,
            known.RUNNING,
            reason=f"{job.kind}Running",
            message=f"{job.kind} {job.namespace}/{job.name} is running.",
            now=now,
        )
    return conditions


def _surplus_services(job: TrainingJob, state: JobState) -> tuple[Child, ...]:
    """Of workers that an elastic job no longer has."""
    wanted = {job.replica_name(each) for each in job.list_replicas()}
    return tuple(
        each
        for each in state.children.values()
        if each.kind == "Service" and each.name not in wanted and not each.deleting
    )


def _end(
    job: TrainingJob, state: JobState, found: Found, status: Json, outcome: Outcome
) -> JobDecision:
    word = known.SUCCEEDED if outcome.succeeded else known.FAILED
    conditions = set_condition(
        own_conditions(status),
        word,
        reason=f"{job.kind}{word}",
        message=outcome.message,
        now=state.now,
    )
    made = make_status(
        job,
        conditions,
        Reason(outcome.reason, outcome.message),
        state.now,
        replicas=end_counts(status["replicaStatuses"], succeeded=outcome.succeeded),
        restarts=read_restarts(status),
        started=status.get("startTime"),
        completed=format_time(state.now),
    )
    return _after_end(job, state, found, made)


def _after_end(job: TrainingJob, state: JobState, found: Found, status: Json) -> JobDecision:
    """Clean up, and delete the job when its time has come. The status stays."""
    reason = condition_of({"status": status}, known.READY).get("reason")
    going = [
        each
        for each in found.values()
        if not each.is_leaving
        and (
            job.policy.clean == "All"
            or (each.is_active and (job.policy.clean == "Running" or reason in LIMITS))
        )
    ]
    decision = JobDecision(
        status,
        delete_pods=tuple(going),
        delete_children=_unneeded_children(job, state, going),
        events=list_events(job, own_conditions(status), found.values(), state.now),
    )
    ended, seconds = parse_time(status.get("completionTime")), job.policy.time_to_live
    if ended is None or seconds is None or job.policy.suspend:
        return decision
    expires = ended + timedelta(seconds=seconds)
    if expires <= state.now:
        return replace(decision, delete_job=True)
    return replace(decision, recheck=expires)


def _unneeded_children(
    job: TrainingJob, state: JobState, going: Iterable[ReplicaPod]
) -> tuple[Child, ...]:
    """The Services of the Pods that go; a PodGroup and an autoscaler in any case."""
    names = {each.name for each in going}
    return tuple(
        each
        for each in state.children.values()
        if not each.deleting
        and (each.kind != "Service" or each.name in names or job.policy.clean == "All")
    )

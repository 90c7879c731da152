"""The events of a training job that follow from its status and its Pods.

They are derived from what is there, so one that a killed operator did not write is written by the
next; what happened long ago is not told again, because Kubernetes forgets events.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from clew.kube.objects import Object, parse_time
from clew.kube.training.conditions import FAILED, RESTARTING, SUCCEEDED, SUSPENDED
from clew.kube.training.job_spec import TrainingJob
from clew.kube.training.model import JobEvent
from clew.kube.training.replicas import ReplicaPod

RECENT = timedelta(minutes=10)
_TOLD = (SUCCEEDED, FAILED, RESTARTING, SUSPENDED)


def list_events(
    job: TrainingJob, conditions: Sequence[Object], pods: Iterable[ReplicaPod], now: datetime
) -> tuple[JobEvent, ...]:
    found = [*_of_conditions(conditions), *_of_pods(pods), *_of_templates(job, now)]
    return tuple(each for each in found if now - each.at < RECENT)


def _of_conditions(conditions: Sequence[Object]) -> Iterator[JobEvent]:
    for each in conditions:
        at = parse_time(each.get("lastTransitionTime"))
        resumed = each.get("type") == SUSPENDED and each.get("status") == "False"
        if at and each.get("type") in _TOLD and (each.get("status") == "True" or resumed):
            reason = str(each.get("reason"))
            yield JobEvent(
                key=f"{reason} {each.get('lastTransitionTime')}",
                reason=reason,
                message=str(each.get("message")),
                at=at,
                warning=each.get("type") in (FAILED, RESTARTING),
            )


def _of_pods(pods: Iterable[ReplicaPod]) -> Iterator[JobEvent]:
    for found in pods:
        if found.exit_code and found.ended:
            yield JobEvent(
                key=f"exit {found.uid}",
                reason="ExitedWithCode",
                message=f"Pod {found.name} exited with code {found.exit_code}.",
                at=found.ended,
                warning=True,
            )


def _of_templates(job: TrainingJob, now: datetime) -> Iterator[JobEvent]:
    """The template's restart policy is not used: that of the replicas is."""
    made = parse_time(job.resource["metadata"].get("creationTimestamp"))
    for type_, spec in job.replicas.items():
        if spec.pod.get("restartPolicy"):
            yield JobEvent(
                key=f"template {type_}",
                reason="SetPodTemplateRestartPolicy",
                message=f"The restartPolicy in the template of {type_} is not used, but that of"
                f" the replicas: {spec.restart_policy}.",
                at=made or now,
                warning=True,
            )

"""How a task's Pod ended, from its status, in plain words. Pure.

A Pod that Kubernetes ended for reasons of its own (its node went away or had no room, a more
important Pod took its place) is `transient`: the same attempt would have succeeded elsewhere.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from clew.kube.objects import Object, condition_of, dig, is_deleting, parse_time
from clew.kube.pod_status import container_status, ended_state, has_ended
from clew.kube.tasks.task_pod import HELPER, MAIN, STEP

_LONGEST = 500
_SILENT = timedelta(seconds=30)
"""How long after its time a deleted Pod may still be there before its node counts as lost."""

_DISRUPTIONS: Mapping[str, str] = {
    "PreemptionByScheduler": "a Pod of higher priority took its place on the node",
    "EvictionByEvictionAPI": "it was evicted, because its node is being emptied",
    "DeletionByTaintManager": "it was removed from its node, which is unreachable or has a taint",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "its node ended it: it is short of resources, or shuts down",
}
_REASONS: Sequence[tuple[str, str, bool]] = (
    ("DeadlineExceeded", "it ran longer than its time limit", False),
    ("Evicted", "it was evicted from its node", True),
    ("Preempt", "a Pod of higher priority took its place on the node", True),
    ("NodeLost", "its node was lost", True),
    ("NodeShutdown|Shutdown|Terminated", "its node was shut down", True),
    ("OutOf|NodeAffinity|NodePorts|Unexpected|Topology|.*Admission", "its node refused it", True),
    ("", "Kubernetes ended it", False),
)
"""Patterns of the reason of a Pod, what it means, and whether it is transient."""


class PodOutcome(Struct, frozen=True, kw_only=True):
    status: int | None = None
    """The exit status of the task's command; None if it did not start, or is unknown."""
    problem: str | None = None
    """Why the Pod did not succeed, as a sentence; None if it did."""
    transient: bool = False
    """Another try makes sense: the task is not the cause."""
    node: str | None = None
    image_digest: str | None = None
    """Of the task's image, as the node reports it."""
    started: datetime | None = None
    """When the task's container began; it waits for its inputs then."""
    ended: datetime | None = None
    message: str = ""
    """What the helper left as its message."""
    placement: str | None = None
    """Why it is on its node, as the latency-aware scheduler said on the Pod."""


def find_outcome(pod: Object, now: datetime) -> PodOutcome | None:
    """How a Pod ended; None while it may still succeed."""
    known = _describe(pod)
    if _has_succeeded(pod):
        return known
    if has_ended(pod):
        cause, transient = _find_cause(pod, known)
        return replace(known, problem=_cut(cause), transient=transient)
    if not is_deleting(pod) and (stuck := _find_deadlock(pod, known)):
        return stuck
    until = parse_time(dig(pod, "metadata", "deletionTimestamp"))
    if until and now > until + _SILENT:
        where = f"its node {known.node} does not answer" if known.node else "it does not terminate"
        return replace(known, problem=f"it was deleted, and {where}", transient=True)
    return None


def is_over(pod: Object) -> bool:
    """Whether no container of it runs any more."""
    return has_ended(pod) or _has_succeeded(pod)


def _has_succeeded(pod: Object) -> bool:
    """A Pod whose containers have all succeeded counts: none of them starts again. Its phase
    follows a second later, when the node has removed its network."""
    if dig(pod, "status", "phase") == "Succeeded":
        return True
    ends = [ended_state(container_status(pod, name)) for name in (HELPER, MAIN)]
    return not has_ended(pod) and all(one.get("exitCode") == 0 for one in ends)


def _find_deadlock(pod: Object, known: PodOutcome) -> PodOutcome | None:
    """Why one container waits forever for another, which has failed."""
    if problem := _find_helper_failure(pod, known):
        return replace(known, problem=_cut(problem))
    main = ended_state(container_status(pod, MAIN))
    if main.get("reason") != "StartError":
        return None
    cause = _cut(_find_main_failure(pod) or "")
    return replace(known, problem=cause, transient=_lacks_step(pod))


def _lacks_step(pod: Object) -> bool:
    """Whether the task was started where nobody had installed clew-step: the node does so if it
    cannot start the helper at first, or if the helper fails at once."""
    main = ended_state(container_status(pod, MAIN))
    return main.get("reason") == "StartError" and STEP in str(main.get("message") or "")


def outcome_of_deleted(pod: Object, now: datetime) -> PodOutcome:
    """How a Pod ended that is gone. `pod`: as it was last seen."""
    found = find_outcome(pod, now)
    cause, _ = _find_disruption(pod) or (_DELETED, True)
    return found or replace(_describe(pod), problem=_cut(cause), transient=True)


def never_started(problem: str, *, transient: bool = False) -> PodOutcome:
    return PodOutcome(problem=_cut(problem), transient=transient)


_DELETED = "a user or another controller deleted its Pod while it ran"


def _describe(pod: Object) -> PodOutcome:
    """What is known about a Pod, whether it has ended or not."""
    main = container_status(pod, MAIN)
    ended = ended_state(main)
    started = ended.get("startedAt") or dig(main, "state", "running", "startedAt")
    image = str(main.get("imageID") or "")
    status = ended.get("exitCode")
    if ended.get("reason") in ("ContainerStatusUnknown", "StartError"):
        status = None  # Kubernetes set it; the command did not return it
    message = ended_state(container_status(pod, HELPER)).get("message")
    return PodOutcome(
        status=status,
        node=dig(pod, "spec", "nodeName"),
        image_digest=image.rpartition("@")[2] or None,
        started=parse_time(started),
        ended=parse_time(ended.get("finishedAt")),
        message=str(message or ""),
    )


def _find_cause(pod: Object, known: PodOutcome) -> tuple[str, bool]:
    """Why a Pod failed, and whether that is transient. What ended the whole Pod counts first:
    its containers were killed then."""
    if found := _find_disruption(pod):
        return found
    if ended_state(container_status(pod, MAIN)).get("reason") == "ContainerStatusUnknown":
        return "its node lost the status of the container", True
    if is_deleting(pod):
        return _DELETED, True
    helper = _find_helper_failure(pod, known)
    if _lacks_step(pod):
        return helper or _find_main_failure(pod) or "", helper is None
    if text := _find_main_failure(pod) or helper:
        return text, False
    return "its Pod failed, and nothing says why", True


def _find_disruption(pod: Object) -> tuple[str, bool] | None:
    """What ended the Pod as a whole."""
    disruption = condition_of(pod, "DisruptionTarget")
    said = str(dig(pod, "status", "message") or disruption.get("message") or "")
    if disruption.get("status") == "True":
        text = _DISRUPTIONS.get(str(disruption.get("reason")), "Kubernetes took it off its node")
        return _quote(text, said), True
    reason = str(dig(pod, "status", "reason") or "")
    if not reason:
        return None
    _, text, transient = next(one for one in _REASONS if re.match(one[0], reason))
    return _quote(text, said or reason), transient


def _find_main_failure(pod: Object) -> str | None:
    main = ended_state(container_status(pod, MAIN))
    if main.get("reason") == "OOMKilled":
        return _describe_out_of_memory(pod, MAIN, "it")
    if main.get("reason") == "StartError":
        return _quote("its container cannot be started", str(main.get("message") or ""))
    return describe_status(int(main["exitCode"])) if main.get("exitCode") else None


def _find_helper_failure(pod: Object, known: PodOutcome) -> str | None:
    helper = ended_state(container_status(pod, HELPER))
    if helper.get("reason") == "OOMKilled":
        return _describe_out_of_memory(pod, HELPER, "the container that moves its data")
    if not helper.get("exitCode"):
        return None
    text = "its inputs could not be fetched"
    if known.status == 0:
        text = "its outputs could not be stored"
    lines = str(helper.get("message") or "").strip().splitlines()
    return _quote(text, lines[-1] if lines else f"the helper ended with {helper['exitCode']}")


def describe_status(status: int) -> str:
    """An exit status of a container in words."""
    if status > 128:
        try:
            return f"it was killed by {signal.Signals(status - 128).name}"
        except ValueError:
            pass
    return f"it ended with status {status}"


def _describe_out_of_memory(pod: Object, name: str, subject: str) -> str:
    containers = dig(pod, "spec", "containers") or ()
    limits = (
        dig(one, "resources", "limits", "memory") for one in containers if one["name"] == name
    )
    limit = next(limits, None)
    allowed = f"its limit of {limit}" if limit else "its node had"
    return f"{subject} used more memory than {allowed}, and was killed"


def _quote(text: str, said: str) -> str:
    return f"{text}: {said}" if said else text


def _cut(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]

"""Why a resource is not ready, in words for its user.

Kubernetes reports causes in many places: conditions of Pods and Deployments, states of containers,
and, if there is no Pod yet, only in events. This module maps them to one reason with a stable name
(`docs/reference/operator.md` lists them) and a sentence that quotes Kubernetes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.kube.controller.model import Event
from clew.kube.objects import (
    Json,
    Object,
    condition_of,
    dig,
    is_deleting,
    is_ready,
    name_of,
    uid_of,
)

MAX_LENGTH = 1000
"""Messages are cut to this many characters: events of a large cluster name every node."""


@dataclass(frozen=True)
class Reason:
    name: str
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text[:MAX_LENGTH])


RUNNING = Reason("Running", "")
STOPPED = Reason("Stopped", "It is stopped; its volumes are kept. Start it to go on.")
STOPPING = Reason("Stopping", "It is being stopped.")
STARTING = Reason("Starting", "Kubernetes is about to make its Pod.")

_REFUSALS: Sequence[tuple[str, str, str]] = (
    ("exceeded quota", "QuotaExceeded", "The quota of this namespace leaves no room for it"),
    ("must specify", "QuotaExceeded", "The quota of this namespace requires requests and limits"),
    ("violates PodSecurity", "NotAllowed", "The rules of this namespace forbid such a Pod"),
    ('User "[^"]*" cannot ', "NotAllowed", "The operator lacks the right to make it"),
    ("service ?account .*not found", "ServiceAccountMissing", "Its service account does not exist"),
    ("forbidden", "NotAllowed", "Kubernetes refuses the Pod"),
    ("", "PodRefused", "Kubernetes cannot make the Pod"),
)
_UNSCHEDULABLE: Sequence[tuple[str, str, str]] = (
    ("persistentvolumeclaim .*not found", "VolumeMissing", "A volume of the Pod does not exist"),
    ("ReadWriteOncePod", "VolumeInUse", "A volume is in use by another Pod"),
    ("unbound immediate", "VolumeNotReady", "A volume of the Pod has no storage yet"),
    ("no available persistent volumes", "VolumeNotReady", "There is no storage for a volume"),
    ("[vV]olume('s)? node affinity", "VolumeElsewhere", "No node that fits can reach its volume"),
    ("Insufficient", "NoRoom", "No node has enough free resources"),
    ("", "NoNodeFits", "No node fits"),
)
_WAITING: Mapping[str, tuple[str, str]] = {
    "ErrImagePull": ("ImageNotPulled", "The image cannot be pulled"),
    "ImagePullBackOff": ("ImageNotPulled", "The image cannot be pulled"),
    "ErrImageNeverPull": ("ImageNotPulled", "The image is not on the node, and may not be pulled"),
    "RegistryUnavailable": ("ImageNotPulled", "The registry of the image does not answer"),
    "InvalidImageName": ("ImageNotPulled", "The name of the image is not valid"),
    "CreateContainerConfigError": ("ConfigMissing", "A required Secret or ConfigMap is missing"),
    "CreateContainerError": ("CannotStart", "The container cannot be made"),
    "RunContainerError": ("CannotStart", "The container cannot be started"),
}
_VOLUMES: Sequence[tuple[str, str, str]] = (
    ("Multi-Attach", "VolumeInUse", "A volume is in use on another node"),
    ("", "VolumeNotMounted", "A volume cannot be mounted"),
)


def ready_condition(resource: Object, reason: Reason, now: str) -> Json:
    """The Ready condition; it keeps its transition time while the status stays the same."""
    status = "True" if reason is RUNNING else "False"
    before = condition_of(resource, "Ready")
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": "Ready",
        "status": status,
        "reason": reason.name,
        **({"message": reason.text} if reason.text else {}),
        "lastTransitionTime": since or now,
    }


def reason_of_workload(status: Object, events: Iterable[Event]) -> Reason:
    """Why there is no Pod: from the condition or the last event of the workload."""
    for found in status.get("conditions") or ():
        if found.get("type") == "ReplicaFailure" and found.get("status") == "True":
            return _match(_REFUSALS, str(found.get("message", "")))
    last = [event for event in events if event.about_kind != "Pod"][-1:]
    if last and last[0].warning and last[0].reason == "FailedCreate":
        return _match(_REFUSALS, last[0].message)
    return STARTING


def reason_of_refusal(message: str, *, invalid: bool) -> Reason:
    """Why the API server rejected a child."""
    if invalid:
        return Reason("InvalidSpec", _sentence("Kubernetes rejects its spec", message))
    return _match(_REFUSALS, message)


def reason_of_pod(pod: Object, events: Iterable[Event], *, stopped: bool) -> Reason:
    """Why a Pod is not ready, or `RUNNING`. `stopped`: whether its resource was stopped."""
    if is_deleting(pod):
        return _reason_of_deleted_pod(pod, stopped)
    if is_ready(pod):
        return RUNNING
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return _match(_UNSCHEDULABLE, str(scheduled.get("message", "")))
    containers = [
        *(dig(pod, "status", "initContainerStatuses") or ()),
        *(dig(pod, "status", "containerStatuses") or ()),
    ]
    found = next(filter(None, map(_reason_of_container, containers)), None) or _reason_of_volumes(
        pod, events
    )
    return found or _reason_of_phase(pod, containers)


def _reason_of_deleted_pod(pod: Object, stopped: bool) -> Reason:
    """A node that does not respond cannot end its Pods, so they stay until it is back."""
    evicted = condition_of(pod, "DisruptionTarget").get("reason") == "DeletionByTaintManager"
    if not is_ready(pod) and (evicted or _is_node_silent(pod)):
        return _unreachable(pod, "; its Pod remains until the node responds or is removed")
    return STOPPING if stopped else Reason("Starting", f"Its Pod {name_of(pod)} is being replaced.")


def _is_node_silent(pod: Object) -> bool:
    """Whether the Pod is not ready although its containers are: then the node controller, and not
    the kubelet, set that condition, because the node does not respond."""
    found = dig(pod, "status", "containerStatuses")
    return bool(found) and all(container.get("ready") for container in found)


def _unreachable(pod: Object, more: str = "") -> Reason:
    node = dig(pod, "spec", "nodeName")
    return Reason("NodeUnreachable", f"Its node {node} does not respond{more}.")


def _reason_of_phase(pod: Object, containers: Sequence[Object]) -> Reason:
    if dig(pod, "status", "phase") in ("Failed", "Succeeded"):
        return Reason("Ended", _sentence("Its Pod ended", str(dig(pod, "status", "message") or "")))
    if _is_node_silent(pod):
        return _unreachable(pod)
    if any(dig(c, "state", "running") for c in containers):
        return Reason("NotReady", "It runs, but does not answer yet.")
    return Reason("Starting", f"Its Pod {name_of(pod)} is being started.")


def _reason_of_container(container: Object) -> Reason | None:
    waiting = dig(container, "state", "waiting") or {}
    state = str(waiting.get("reason", ""))
    if state in _WAITING:
        name, text = _WAITING[state]
        image = container.get("image", "")
        return Reason(name, _sentence(f"{text} ({image})", str(waiting.get("message", ""))))
    ended = dig(container, "state", "terminated") or (
        dig(container, "lastState", "terminated") if state == "CrashLoopBackOff" else None
    )
    if not ended or (ended.get("exitCode") == 0 and state != "CrashLoopBackOff"):
        return None
    if ended.get("reason") == "OOMKilled":
        return Reason("OutOfMemory", "It used more memory than its limit, and was ended.")
    return Reason(
        "Crashing",
        _sentence(
            f"Its container {container.get('name')} ended with status {ended.get('exitCode')}",
            str(ended.get("message") or ""),
        ),
    )


def _reason_of_volumes(pod: Object, events: Iterable[Event]) -> Reason | None:
    of_pod = [event for event in events if event.about_uid == uid_of(pod)]
    faults = [e for e in of_pod if e.reason in ("FailedAttachVolume", "FailedMount")]
    if not faults or of_pod[-1].reason in (
        "SuccessfulAttachVolume",
        "Pulling",
        "Pulled",
        "Created",
    ):
        return None
    attach = [event for event in faults if "Multi-Attach" in event.message]
    return _match(_VOLUMES, (attach or faults)[-1].message)


def _match(rules: Sequence[tuple[str, str, str]], message: str) -> Reason:
    name, text = next((n, t) for pattern, n, t in rules if re.search(pattern, message))
    return Reason(name, _sentence(text, message))


def _sentence(text: str, message: str) -> str:
    return f"{text}: {message}" if message else f"{text}."

"""Read the status of a Pod: its containers and their states."""

from collections.abc import Sequence

from clew.kube.objects import Json, Object, dig


def container_statuses(pod: Object) -> Sequence[Object]:
    """Of init containers first."""
    status = dig(pod, "status") or {}
    return [
        one
        for name in ("initContainerStatuses", "containerStatuses")
        for one in status.get(name) or ()
    ]


def container_status(pod: Object, name: str) -> Object:
    """Empty if the node has not reported it."""
    return next((one for one in container_statuses(pod) if one.get("name") == name), {})


def waiting_state(status: Object) -> Json:
    """Empty if the container does not wait."""
    return dig(status, "state", "waiting") or {}


def ended_state(status: Object) -> Json:
    """Empty if the container has not ended."""
    return dig(status, "state", "terminated") or {}


def has_started(status: Object) -> bool:
    return bool(dig(status, "state", "running") or ended_state(status))


def has_ended(pod: Object) -> bool:
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")

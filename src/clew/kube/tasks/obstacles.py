"""Why a Pod does not start yet, in plain words, and whether waiting helps. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from clew.kube.controller.model import Event
from clew.kube.controller.status_reasons import Reason, reason_of_pod
from clew.kube.objects import Object, dig
from clew.kube.pod_status import container_status, container_statuses, has_started, waiting_state
from clew.kube.tasks.task_pod import HELPER, MAIN

_WAITING = ("Running", "Starting", "NotReady", "Stopping", "Ended", "Crashing", "OutOfMemory")
"""Reasons that are no obstacle, or that the outcome explains."""
_HOPELESS = ("ErrImageNeverPull", "InvalidImageName")
"""States of a container that no waiting changes."""
_NO_SUCH_IMAGE = re.compile(
    r"not found|manifest unknown|does not exist|access denied|unauthorized|authorization failed"
)
_ENDING = {
    "ImageNotPulled": True,
    "ConfigMissing": False,
    "CannotStart": False,
    "VolumeMissing": False,
    "VolumeNotMounted": True,
}
"""Obstacles that are given up after a while, and whether another try makes sense then. The others
end when something else does, or when the cluster grows."""


@dataclass(frozen=True)
class Obstacle:
    name: str
    text: str
    """A sentence about the Pod."""
    hopeless: bool = False
    """No waiting changes it."""
    ends: bool = False
    """Give the Pod up if it stays."""
    transient: bool = False
    """After that, another try makes sense."""


def find_obstacle(pod: Object, events: Iterable[Event]) -> Obstacle | None:
    """None: the Pod runs, or nothing is known that keeps it from starting. The task may run and
    wait for its inputs, while the helper cannot start."""
    if all(has_started(container_status(pod, name)) for name in (HELPER, MAIN)):
        return None
    reason: Reason = reason_of_pod(pod, events, stopped=False)
    if reason.name in _WAITING:
        return None
    states = [waiting_state(one) for one in container_statuses(pod)]
    hopeless = any(
        state.get("reason") in _HOPELESS
        or (
            state.get("reason") == "ImagePullBackOff"
            and _NO_SUCH_IMAGE.search(str(state.get("message")))
        )
        for state in states
    )
    return Obstacle(
        reason.name,
        reason.text,
        hopeless=bool(hopeless),
        ends=reason.name in _ENDING,
        transient=_ENDING.get(reason.name, False) and not hopeless,
    )


def needs_events(pod: Object) -> bool:
    """Whether only events can say why a Pod does not start: it has a node, and no container of it
    has a problem of its own."""
    return bool(dig(pod, "spec", "nodeName")) and not any(map(has_started, container_statuses(pod)))

"""Run a Pod to its end, and say why it did not end well.

The state is read anew after every event of a watch, which may break at any time. A Pod that cannot
start (its image is gone, no node takes it) never ends by itself: after a while it is given up.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.errors import Unavailable
from clew.kube.objects import Key, Object, condition_of, dig
from clew.kube.pod_status import container_statuses, ended_state, has_started, waiting_state
from clew.kube.scratch.scratch_client import ScratchClient

START_SECONDS = 180
"""How long a Pod may wait for a node, its volumes and its images."""
_GONE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_BROKEN = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
_PAUSE = 0.5
_WATCH_SECONDS = 30.0


@dataclass(frozen=True)
class PodEnd:
    """How a Pod ended. `problem`: why it did not succeed, as a sentence; None if it did."""

    status: int | None
    problem: str | None
    node: str | None = None
    images: tuple[tuple[str, str], ...] = ()
    """The image of each container by its id, as the node reports it."""
    image_gone: bool = False


def await_running(client: ScratchClient, namespace: str, name: str) -> None:
    """Wait until a Pod runs; Unavailable if it cannot."""
    for pod in _states(client, namespace, name, START_SECONDS):
        if dig(pod, "status", "phase") == "Running":
            return
        end = find_end(pod)
        if end is not None:
            raise Unavailable(f"a Pod in the scratch namespace did not start: {end.problem}")
    raise Unavailable(f"a Pod in the scratch namespace did not start in {START_SECONDS} s")


def await_end(client: ScratchClient, namespace: str, name: str, *, seconds: int) -> PodEnd:
    """Wait until a Pod has ended, or cannot start; `seconds` after its start at the latest."""
    begun = time.monotonic()
    found: Object = {}
    for pod in _states(client, namespace, name, START_SECONDS + seconds):
        found = pod
        end = find_end(pod)
        if end is not None:
            return end
        if (
            not any(map(has_started, container_statuses(pod)))
            and time.monotonic() - begun > START_SECONDS
        ):
            break
    condition = condition_of(found, "PodScheduled")
    why = condition.get("message") if condition.get("status") == "False" else None
    return PodEnd(None, str(why or "it did not end in time")[:300])


def find_end(pod: Object) -> PodEnd | None:
    """How a Pod ended; None while it may still succeed."""
    phase = dig(pod, "status", "phase")
    node = dig(pod, "spec", "nodeName")
    statuses = container_statuses(pod)
    images = tuple((str(one.get("name")), str(one.get("imageID"))) for one in statuses)
    if phase == "Succeeded":
        return PodEnd(0, None, node, images)
    if phase == "Failed":
        status, problem = _find_failure(pod, statuses)
        return PodEnd(status, problem, node, images)
    for one in statuses:
        waiting = waiting_state(one)
        reason, message = waiting.get("reason"), str(waiting.get("message") or "")[:300]
        if reason in _GONE and reason != "ErrImagePull":
            image = str(one.get("image"))
            return PodEnd(None, f"the image {image} is gone: {message}", node, images, True)
        if reason in _BROKEN:
            return PodEnd(None, f"{reason}: {message}", node, images)
    return None


def _find_failure(pod: Object, statuses: Sequence[Object]) -> tuple[int | None, str]:
    """The exit status of the first container that failed, and why. What ended the whole Pod counts
    first: its containers were killed then."""
    reason = dig(pod, "status", "reason")
    if reason:
        return None, f"{reason}: {dig(pod, 'status', 'message') or ''}"[:300].rstrip(": ")
    for one in statuses:
        ended = ended_state(one)
        if ended.get("exitCode"):
            why = f" ({ended['reason']})" if ended.get("reason") not in (None, "Error") else ""
            return (
                int(ended["exitCode"]),
                f"its container {one.get('name')} ended with status {ended['exitCode']}{why}",
            )
    return None, "it failed"


def _states(client: ScratchClient, namespace: str, name: str, seconds: int) -> Iterator[Object]:
    """The Pod as it is now, and again whenever it may have changed."""
    key, end = Key("Pod", namespace, name), time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            pod = client.get(key)
        except Unavailable:
            time.sleep(_PAUSE)  # the API server restarts: the Pods run on
            continue
        yield pod
        client.await_change(pod, min(end - time.monotonic(), _WATCH_SECONDS))

"""Why the latency-aware scheduler chose the node of a Pod, as it says in an event. Pure."""

from collections.abc import Iterable

from clew.kube.controller.model import Event
from clew.kube.tasks.task_pod import TaskPod
from clew.placement.explanation import COMPONENT, REASONS
from clew.placement.request import KIND_LABEL

_LONGEST = 500


def asks_for_placement(pod: TaskPod) -> bool:
    """Whether the scheduler may have something to say about it."""
    return KIND_LABEL in pod.labels


def find_placement_reason(events: Iterable[Event]) -> str | None:
    """What the latest of the events of a Pod says about its node."""
    said = [one for one in events if one.source == COMPONENT and one.reason in REASONS]
    return " ".join(said[-1].message.split())[:_LONGEST] if said else None

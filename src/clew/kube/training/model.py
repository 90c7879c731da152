"""The input and the output of a decision about one training job.

A decision is a pure function: the same job, Pods and time give the same decision. Whatever was not
carried out of it, because the operator was killed, is decided again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clew.kube.controller.model import Child, Event
from clew.kube.objects import Json, Object
from clew.kube.training.replicas import ReplicaPod


@dataclass(frozen=True)
class JobState:
    """The objects around one job, as the watches last saw them."""

    now: datetime
    pods: Sequence[Object] = ()
    """The Pods that the job owns."""
    children: Mapping[tuple[str, str], Child] = field(default_factory=dict)
    """The other objects that it owns, by kind and name: Services, its PodGroup, its autoscaler."""
    events: Sequence[Event] = ()
    """Events of its Pods, newest last."""
    restricted: bool = False
    """Whether the namespace enforces the Pod Security Standard `restricted`."""


@dataclass(frozen=True)
class JobEvent:
    """An event to write about the job, unless it was written."""

    key: str
    """What happened, and when: the same key is the same event."""
    reason: str
    message: str
    at: datetime
    warning: bool = False


@dataclass(frozen=True)
class JobDecision:
    status: Json
    """Written before anything is deleted: it has what is known of the Pods that go."""
    pods: tuple[Json, ...] = ()
    """To create, as all others that are listed here and below."""
    services: tuple[Json, ...] = ()
    others: tuple[Json, ...] = ()
    """Created before the Pods: a PodGroup, or an autoscaler."""
    delete_pods: tuple[ReplicaPod, ...] = ()
    delete_children: tuple[Child, ...] = ()
    delete_job: bool = False
    events: tuple[JobEvent, ...] = ()
    recheck: datetime | None = None
    """When to decide again, if nothing changes before."""

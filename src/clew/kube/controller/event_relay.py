"""Repeat the events of children as events of their resource, where users look for them.

The name of the copy is derived from the uid of the event, so a second operator, or the same one
after a restart, finds the copy and writes none twice.
"""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime

from clew.kube.client import AlreadyExists, Client, Conflict
from clew.kube.controller.model import ClusterState, Event
from clew.kube.objects import Json, Object, format_time, name_of, namespace_of, uid_of

COMPONENT = {
    "Notebook": "notebook-controller",
    "Tensorboard": "tensorboard-controller",
    "PVCViewer": "pvcviewer-controller",
    "TFJob": "tfjob-controller",
    "PyTorchJob": "pytorchjob-controller",
}


def find_unrelayed_events(
    resource: Object, cluster: ClusterState, known_events: Iterable[Event]
) -> Iterator[Json]:
    """The copies to write: of events of children that are new, or that occurred again."""
    known = {event.name: event.count for event in known_events}
    for event in cluster.events:
        made = relay_event(resource, event, cluster.now)
        if known.get(name_of(made), 0) < event.count:
            yield made


def relay_event(resource: Object, event: Event, now: datetime) -> Json:
    text = f"Reissued from {event.about_kind.lower()}/{event.about_name}: {event.message}"
    return make_event(
        resource,
        key=event.uid,
        warning=event.warning,
        reason=event.reason,
        message=text,
        first=event.first or event.last or now,
        last=event.last or now,
        count=event.count,
    )


def make_event(
    resource: Object,
    *,
    key: str,
    warning: bool,
    reason: str,
    message: str,
    first: datetime,
    last: datetime,
    count: int = 1,
) -> Json:
    """An event about a resource; the same key makes the same name."""
    component = COMPONENT[resource["kind"]]
    suffix = hashlib.blake2b(f"{uid_of(resource)} {key}".encode(), digest_size=8).hexdigest()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name_of(resource)}.{suffix}",
            "namespace": namespace_of(resource),
        },
        "involvedObject": {
            "apiVersion": resource["apiVersion"],
            "kind": resource["kind"],
            "name": name_of(resource),
            "namespace": namespace_of(resource),
            "uid": uid_of(resource),
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message[:1024],
        "count": count,
        "firstTimestamp": format_time(first),
        "lastTimestamp": format_time(last),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }


async def write_event(client: Client, event: Json) -> None:
    try:
        await client.create(event)
    except AlreadyExists:
        patch = {field: event[field] for field in ("count", "message", "lastTimestamp")}
        try:
            await client.merge("Event", event, patch)
        except Conflict:
            return  # the old event has just expired

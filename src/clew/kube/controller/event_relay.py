"""What Kubernetes says of children, said again of their parent: who uses it looks there.

Each event has one that follows from its uid, so that a second operator, or the same one after a
restart, finds it and says nothing twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime

from clew.kube.client import Changed, Client, Taken
from clew.kube.controller.model import Event, World
from clew.kube.objects import Json, Object, name_of, namespace_of, uid_of, written

COMPONENT = {
    "Notebook": "notebook-controller",
    "Tensorboard": "tensorboard-controller",
    "PVCViewer": "pvcviewer-controller",
}


def missing(resource: Object, world: World, said: Iterable[Event]) -> Iterator[Json]:
    """Events to be written: those of children that were not yet said of the resource so often."""
    known = {event.name: event.count for event in said}
    for event in world.events:
        made = of_child(resource, event, world.now)
        if known.get(name_of(made), 0) < event.count:
            yield made


def of_child(resource: Object, event: Event, now: datetime) -> Json:
    text = f"Reissued from {event.about_kind.lower()}/{event.about_name}: {event.message}"
    return said_of(
        resource,
        key=event.uid,
        warning=event.warning,
        reason=event.reason,
        message=text,
        first=event.first or event.last or now,
        last=event.last or now,
        count=event.count,
    )


def said_of(
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
    """An event about a resource; the same key is the same event."""
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
        "firstTimestamp": written(first),
        "lastTimestamp": written(last),
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }


async def write(client: Client, event: Json) -> None:
    try:
        await client.create(event)
    except Taken:
        patch = {field: event[field] for field in ("count", "message", "lastTimestamp")}
        try:
            await client.merge("Event", event, patch)
        except Changed:
            return  # it expired just now: what it said is as old

"""What was seen of the cluster, kept small: kopf's indices, and from them the world of a resource.

An index forgets what was deleted when its watch says so; what vanished while no watch was open is
found by `sweep`, and counts as gone from then on.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from clew.kube.controller.model import Child, Event, World, child_of
from clew.kube.objects import (
    Json,
    Key,
    Object,
    controller_of,
    dig,
    moment,
    name_of,
    namespace_of,
    uid_of,
)
from clew.kube.resources import network_policies
from clew.kube.resources.tensorboards import source
from clew.kube.resources.viewers import child_name

_HASHED = re.compile(r"(.+)-[a-z0-9]{5,10}")
_ABOUT_PODS = {
    "name",
    "namespace",
    "uid",
    "labels",
    "ownerReferences",
    "creationTimestamp",
    "deletionTimestamp",
}
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_VIEWER = child_name("")

Indexed = dict[Any, Any]


def own(body: Object) -> Indexed:
    """A resource as it is, without the record of who wrote which field."""
    metadata = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
    found = {**body, "metadata": metadata}
    return {Key(body["kind"], namespace_of(body), name_of(body)): found}


def followers(body: Object) -> Indexed:
    """A resource by the claim that it follows."""
    claim = dig(body, "spec", "pvc") or source(str(dig(body, "spec", "logspath") or "")).claim
    key = Key(body["kind"], namespace_of(body), name_of(body))
    return {(namespace_of(body), claim): key} if claim else {}


def children(body: Object) -> Indexed:
    return {(namespace_of(body), body["kind"], name_of(body)): child_of(body)}


def claims(body: Object) -> Indexed:
    kept = {
        "metadata": {"name": name_of(body), "uid": uid_of(body)},
        "spec": {"accessModes": dig(body, "spec", "accessModes")},
        "status": {"accessModes": dig(body, "status", "accessModes")},
    }
    return {(namespace_of(body), name_of(body)): kept}


def pods(body: Object) -> Indexed:
    """A Pod by its workload, its name and each of its claims; of all others nothing is kept."""
    namespace = namespace_of(body)
    volumes = dig(body, "spec", "volumes") or ()
    used = {dig(v, "persistentVolumeClaim", "claimName") for v in volumes} - {None}
    keys: list[Any] = [(namespace, "claim", claim) for claim in used]
    if workload := maker_of(body):
        keys += [(namespace, *workload), (namespace, "Pod", name_of(body))]
    kept = {
        "metadata": {k: v for k, v in body["metadata"].items() if k in _ABOUT_PODS},
        "spec": {"nodeName": dig(body, "spec", "nodeName")},
        "status": dict(body.get("status") or {}),
    }
    return dict.fromkeys(keys, kept)


def events(body: Object) -> Indexed:
    """An event by the workload or the Pod that it is about; ours by the resource."""
    about = body.get("involvedObject") or {}
    namespace, kind, name = namespace_of(body), str(about.get("kind")), str(about.get("name"))
    if kind not in ("Notebook", "Tensorboard", "PVCViewer", "Pod"):
        if not (workload := _workload(kind, name)):
            return {}
        kind, name = workload
    return {(namespace, kind, name): _event(body)}


def _event(body: Object) -> Event:
    about = body.get("involvedObject") or {}
    at = body.get("eventTime")
    return Event(
        uid=uid_of(body),
        name=name_of(body),
        about_kind=str(about.get("kind")),
        about_name=str(about.get("name")),
        about_uid=str(about.get("uid", "")),
        warning=body.get("type") == "Warning",
        reason=str(body.get("reason") or ""),
        message=str(body.get("message") or ""),
        count=int(dig(body, "series", "count") or body.get("count") or 1),
        first=moment(body.get("firstTimestamp") or at),
        last=moment(dig(body, "series", "lastObservedTime") or body.get("lastTimestamp") or at),
        source=str(dig(body, "source", "component") or body.get("reportingComponent") or ""),
    )


def _workload(kind: str, name: str) -> tuple[str, str] | None:
    """What makes Pods, or what that itself belongs to: a ReplicaSet has all of its Deployment's
    name. A Pod may not: Kubernetes cuts its name."""
    if kind in ("StatefulSet", "Deployment"):
        return kind, name
    if kind == "ReplicaSet" and (found := _HASHED.fullmatch(name)):
        return "Deployment", found[1]
    return None


def maker_of(pod: Object) -> tuple[str, str] | None:
    """The workload of a Pod."""
    owner = controller_of(pod)
    return _workload(str(owner.get("kind")), str(owner.get("name")))


def concerned(namespace: str, kind: str, name: str) -> Iterator[Key]:
    """Whose child has, or would have, this name."""
    if kind == "NetworkPolicy":
        if not name.startswith(network_policies.PREFIX):
            return
        name = name.removeprefix(network_policies.PREFIX)
    if kind == "VirtualService" and name.startswith(f"notebook-{namespace}-"):
        yield Key("Notebook", namespace, name.removeprefix(f"notebook-{namespace}-"))
    if kind in ("StatefulSet", "Service", "NetworkPolicy"):
        yield Key("Notebook", namespace, name)
    if kind in ("Deployment", "Service", "VirtualService", "NetworkPolicy"):
        yield Key("Tensorboard", namespace, name)
        if name.startswith(_VIEWER):
            yield Key("PVCViewer", namespace, name.removeprefix(_VIEWER))


class Seen:
    """The indices, to be read."""

    def __init__(self, indices: Mapping[str, Any]) -> None:
        self._indices = indices
        self.gone: set[str] = set()
        """The uids of what vanished unseen."""

    def _at(self, index: str, key: Any) -> Iterable[Any]:
        found = self._indices[index]
        stored: Iterable[Any] = found.get(key, ())
        return stored

    def resource(self, key: Key) -> Json | None:
        found = [r for r in self._at("own", key) if uid_of(r) not in self.gone]
        return found[-1] if found else None

    def resources(self) -> list[Json]:
        keys = list(self._indices["own"])
        return [found for key in keys if (found := self.resource(key))]

    def following(self, namespace: str, claim: str) -> list[Key]:
        return list(self._at("followers", (namespace, claim)))

    def child(self, namespace: str, kind: str, name: str) -> Child | None:
        found = self._at("children", (namespace, kind, name))
        return next((c for c in found if c.uid not in self.gone), None)

    def pods(self, *key: str) -> list[Object]:
        found = [pod for pod in self._at("pods", key) if uid_of(pod) not in self.gone]
        return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))

    def pods_of(self, resource: Object) -> list[Object]:
        """Those of its workload; none of another's that has the same name."""
        place = (namespace_of(resource), *workload_of(resource))
        return self.pods(*place) if self._made(resource) else []

    def makers(self, namespace: str, pod: str) -> list[tuple[str, str]]:
        """The workload of a Pod, by its name alone; of one that is not known, none."""
        return list(filter(None, map(maker_of, self.pods(namespace, "Pod", pod))))

    def _made(self, resource: Object) -> bool:
        found = self.child(namespace_of(resource), *workload_of(resource))
        return found is not None and found.owner == uid_of(resource)

    def events(self, *keys: tuple[str, str, str]) -> list[Event]:
        found: list[Event] = [event for key in keys for event in self._at("events", key)]
        return sorted(found, key=lambda event: (event.last or _LONG_AGO, event.name))

    async def sweep(self, kind: str, list_uids: Callable[[str], Awaitable[set[str]]]) -> bool:
        """Find what is kept of a kind but is no longer there; False: nothing."""
        kept = set(self._kept(kind))
        vanished = kept - await list_uids(kind)
        news = not vanished <= self.gone
        self.gone = (self.gone - kept) | vanished
        return news

    def _kept(self, kind: str) -> Iterator[str]:
        others = "own" if kind in ("Notebook", "Tensorboard", "PVCViewer") else "children"
        index = {"Pod": "pods", "PersistentVolumeClaim": "claims"}.get(kind, others)
        for found in list(self._indices[index].values()):
            for each in found:
                if isinstance(each, Child):
                    if each.kind == kind:
                        yield each.uid
                elif each.get("kind", kind) == kind:
                    yield uid_of(each)

    def world(self, resource: Object, now: datetime, *, restricted: bool = False) -> World:
        namespace, name = namespace_of(resource), name_of(resource)
        workload = workload_of(resource)
        policy = f"{network_policies.PREFIX}{workload[1]}"
        names = {name, workload[1], f"notebook-{namespace}-{name}", policy}
        kinds = ("StatefulSet", "Deployment", "Service", "VirtualService", "NetworkPolicy")
        found = [self.child(namespace, kind, each) for kind in kinds for each in names]
        pods = self.pods_of(resource)
        used = [claim for _, claim in followers(resource)]
        return World(
            now=now,
            children={(child.kind, child.name): child for child in found if child},
            pods=pods,
            claims={
                name: claim
                for name in used
                for claim in self._at("claims", (namespace, name))
                if uid_of(claim) not in self.gone
            },
            holders={claim: self.pods(namespace, "claim", claim) for claim in used},
            events=self._events_of(resource, pods),
            restricted=restricted,
        )

    def _events_of(self, resource: Object, pods: Iterable[Object]) -> list[Event]:
        """Those of its workload, and of the Pods; none of another's of that name, now or before."""
        namespace = namespace_of(resource)
        since = moment(resource["metadata"].get("creationTimestamp"))
        about = [(namespace, *workload_of(resource))] if self._made(resource) else []
        about += [(namespace, "Pod", name_of(pod)) for pod in pods]
        return [
            event
            for event in self.events(*about)
            if since is None or event.last is None or event.last >= since
        ]


def workload_of(resource: Object) -> tuple[str, str]:
    name = name_of(resource)
    return {
        "Notebook": ("StatefulSet", name),
        "Tensorboard": ("Deployment", name),
        "PVCViewer": ("Deployment", child_name(name)),
    }[resource["kind"]]

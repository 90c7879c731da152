"""A cache of the cluster, filled by kopf's watches: the part of each object that decisions need.

An index drops an object when its watch reports the deletion. Objects that were deleted while no
watch was open are found by `sweep`, which adds their uids to `gone`.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from clew.kube.controller.model import Child, ClusterState, Event, child_of, parse_event
from clew.kube.objects import (
    Json,
    Key,
    Object,
    controller_of,
    dig,
    name_of,
    namespace_of,
    parse_time,
    uid_of,
)
from clew.kube.resources import network_policies
from clew.kube.resources.tensorboards import parse_logspath
from clew.kube.resources.viewers import child_name
from clew.kube.training.model import JobState

_REPLICA_SET_NAME = re.compile(r"(.+)-[a-z0-9]{5,10}")
_POD_METADATA = {
    "name",
    "namespace",
    "uid",
    "labels",
    "ownerReferences",
    "creationTimestamp",
    "deletionTimestamp",
}
_TRAINING_JOBS = ("TFJob", "PyTorchJob")
_RESOURCES = ("Notebook", "Tensorboard", "PVCViewer", *_TRAINING_JOBS)
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_VIEWER = child_name("")

Indexed = dict[Any, Any]


def index_resources(body: Object) -> Indexed:
    """A custom resource, without its managed fields."""
    metadata = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
    found = {**body, "metadata": metadata}
    return {Key(body["kind"], namespace_of(body), name_of(body)): found}


def index_followers(body: Object) -> Indexed:
    """A resource by the claim whose node it has to run on."""
    claim = (
        dig(body, "spec", "pvc") or parse_logspath(str(dig(body, "spec", "logspath") or "")).claim
    )
    key = Key(body["kind"], namespace_of(body), name_of(body))
    return {(namespace_of(body), claim): key} if claim else {}


def index_children(body: Object) -> Indexed:
    return {(namespace_of(body), body["kind"], name_of(body)): child_of(body)}


def index_job_children(body: Object) -> Indexed:
    """A child of a training job, by the job."""
    owner = controller_of(body)
    if owner.get("kind") not in _TRAINING_JOBS:
        return {}
    return {(namespace_of(body), str(owner["kind"]), str(owner.get("name"))): child_of(body)}


def index_claims(body: Object) -> Indexed:
    kept = {
        "metadata": {"name": name_of(body), "uid": uid_of(body)},
        "spec": {"accessModes": dig(body, "spec", "accessModes")},
        "status": {"accessModes": dig(body, "status", "accessModes")},
    }
    return {(namespace_of(body), name_of(body)): kept}


def index_pods(body: Object) -> Indexed:
    """A Pod by its workload, its name and each of its claims. Other Pods are not kept."""
    namespace = namespace_of(body)
    volumes = dig(body, "spec", "volumes") or ()
    used = {dig(v, "persistentVolumeClaim", "claimName") for v in volumes} - {None}
    keys: list[Any] = [(namespace, "claim", claim) for claim in used]
    if workload := workload_of_pod(body):
        keys += [(namespace, *workload), (namespace, "Pod", name_of(body))]
    kept = {
        "metadata": {k: v for k, v in body["metadata"].items() if k in _POD_METADATA},
        "spec": {"nodeName": dig(body, "spec", "nodeName")},
        "status": dict(body.get("status") or {}),
    }
    return dict.fromkeys(keys, kept)


def index_events(body: Object) -> Indexed:
    """An event by the workload or Pod it is about; events that we wrote, by the resource."""
    about = body.get("involvedObject") or {}
    namespace, kind, name = namespace_of(body), str(about.get("kind")), str(about.get("name"))
    if kind not in (*_RESOURCES, "Pod"):
        if not (workload := _workload(kind, name)):
            return {}
        kind, name = workload
    return {(namespace, kind, name): parse_event(body)}


def _workload(kind: str, name: str) -> tuple[str, str] | None:
    """The StatefulSet, Deployment or training job; a ReplicaSet is mapped to its Deployment by
    name. That does not work for Pods, whose names Kubernetes may truncate."""
    if kind in ("StatefulSet", "Deployment", *_TRAINING_JOBS):
        return kind, name
    if kind == "ReplicaSet" and (found := _REPLICA_SET_NAME.fullmatch(name)):
        return "Deployment", found[1]
    return None


def workload_of_pod(pod: Object) -> tuple[str, str] | None:
    """The workload of a Pod."""
    owner = controller_of(pod)
    return _workload(str(owner.get("kind")), str(owner.get("name")))


def list_possible_parents(namespace: str, kind: str, name: str) -> Iterator[Key]:
    """The resources whose child of this kind has, or would have, this name."""
    if kind in _TRAINING_JOBS:
        yield Key(kind, namespace, name)
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


class ClusterCache:
    """Reads the indices that kopf fills."""

    def __init__(self, indices: Mapping[str, Any]) -> None:
        self._indices = indices
        self.gone: set[str] = set()
        """The uids of objects that were deleted while no watch was open."""

    def _at(self, index: str, key: Any) -> Iterable[Any]:
        found = self._indices[index]
        stored: Iterable[Any] = found.get(key, ())
        return stored

    def resource(self, key: Key) -> Json | None:
        found = [r for r in self._at("resources", key) if uid_of(r) not in self.gone]
        return found[-1] if found else None

    def resources(self) -> list[Json]:
        keys = list(self._indices["resources"])
        return [found for key in keys if (found := self.resource(key))]

    def followers_of(self, namespace: str, claim: str) -> list[Key]:
        return list(self._at("followers", (namespace, claim)))

    def child(self, namespace: str, kind: str, name: str) -> Child | None:
        found = self._at("children", (namespace, kind, name))
        return next((c for c in found if c.uid not in self.gone), None)

    def pods(self, *key: str) -> list[Object]:
        found = [pod for pod in self._at("pods", key) if uid_of(pod) not in self.gone]
        return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))

    def pods_of(self, resource: Object) -> list[Object]:
        """The Pods of its own workload, not of another owner's workload of the same name."""
        key = (namespace_of(resource), *workload_of(resource))
        return self.pods(*key) if self._owns_workload(resource) else []

    def workloads_of_pod(self, namespace: str, pod: str) -> list[tuple[str, str]]:
        """The workload of a Pod, given by name; empty if the Pod is unknown."""
        return list(filter(None, map(workload_of_pod, self.pods(namespace, "Pod", pod))))

    def _owns_workload(self, resource: Object) -> bool:
        found = self.child(namespace_of(resource), *workload_of(resource))
        return found is not None and found.owner == uid_of(resource)

    def events(self, *keys: tuple[str, str, str]) -> list[Event]:
        found: list[Event] = [event for key in keys for event in self._at("events", key)]
        return sorted(found, key=lambda event: (event.last or _LONG_AGO, event.name))

    async def sweep(self, kind: str, list_uids: Callable[[str], Awaitable[set[str]]]) -> bool:
        """Find cached objects of a kind that no longer exist; whether there are new ones."""
        kept = set(self._kept(kind))
        vanished = kept - await list_uids(kind)
        news = not vanished <= self.gone
        self.gone = (self.gone - kept) | vanished
        return news

    def _kept(self, kind: str) -> Iterator[str]:
        others = ("resources",) if kind in _RESOURCES else ("children", "job_children")
        named = {"Pod": ("pods",), "PersistentVolumeClaim": ("claims",)}.get(kind, others)
        for index in named:
            for found in list(self._indices[index].values()):
                for each in found:
                    if isinstance(each, Child):
                        if each.kind == kind:
                            yield each.uid
                    elif each.get("kind", kind) == kind:
                        yield uid_of(each)

    def state_for(
        self, resource: Object, now: datetime, *, restricted: bool = False
    ) -> ClusterState:
        """All that a decision about this resource depends on."""
        namespace, name = namespace_of(resource), name_of(resource)
        workload = workload_of(resource)
        policy = f"{network_policies.PREFIX}{workload[1]}"
        names = {name, workload[1], f"notebook-{namespace}-{name}", policy}
        kinds = ("StatefulSet", "Deployment", "Service", "VirtualService", "NetworkPolicy")
        found = [self.child(namespace, kind, each) for kind in kinds for each in names]
        pods = self.pods_of(resource)
        used = [claim for _, claim in index_followers(resource)]
        return ClusterState(
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

    def job_state(self, job: Object, now: datetime, *, restricted: bool = False) -> JobState:
        """All that a decision about this training job depends on."""
        namespace, key = namespace_of(job), (namespace_of(job), job["kind"], name_of(job))
        pods = [pod for pod in self.pods(*key) if controller_of(pod).get("uid") == uid_of(job)]
        children = [
            child
            for child in self._at("job_children", key)
            if child.owner == uid_of(job) and child.uid not in self.gone
        ]
        return JobState(
            now=now,
            pods=pods,
            children={(child.kind, child.name): child for child in children},
            events=self.events(*((namespace, "Pod", name_of(pod)) for pod in pods)),
            restricted=restricted,
        )

    def _events_of(self, resource: Object, pods: Iterable[Object]) -> list[Event]:
        """Events of its workload and Pods, not of earlier or foreign objects of the same name."""
        namespace = namespace_of(resource)
        since = parse_time(resource["metadata"].get("creationTimestamp"))
        about = [(namespace, *workload_of(resource))] if self._owns_workload(resource) else []
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

"""The input and the output of a decision about one resource.

A decision is a pure function of the resource and the state of the cluster around it. It contains
the complete manifest of every desired child and the current status; `reconciler` carries out the
difference. So a decision can be repeated at any time with the same result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clew.kube.objects import (
    Json,
    Object,
    annotations_of,
    controller_of,
    dig,
    digest_of,
    is_deleting,
    name_of,
    namespace_of,
    parse_time,
    uid_of,
)

DIGEST = "clew.dev/digest"
"""On each child: the digest of the manifest it was made from. So any change of the manifest is
noticed, also one that only removes a field."""

MANAGER = "clew-operator"
"""The field manager: Kubernetes records under this name which fields we wrote."""

STOPPED = "kubeflow-resource-stopped"
RESTART = "notebooks.opendatahub.io/notebook-restart"


@dataclass(frozen=True)
class Child:
    """An object that has the name of a child; it may belong to another owner."""

    kind: str
    name: str
    uid: str
    owner: str
    """The uid of its controller; empty without one."""
    digest: str
    edited: bool
    """Whether another field manager wrote to its spec."""
    deleting: bool
    generation: int
    """Kubernetes increments it on each change of the spec."""
    policy: str
    """The podManagementPolicy of a StatefulSet, which is immutable."""
    address: str
    """The cluster IP of a Service."""
    status: Json = field(hash=False)


def child_of(found: Object) -> Child:
    """The part of an object that decisions need."""
    fields = dig(found, "metadata", "managedFields") or ()
    return Child(
        kind=str(found.get("kind")),
        name=name_of(found),
        uid=uid_of(found),
        owner=str(controller_of(found).get("uid", "")),
        digest=annotations_of(found).get(DIGEST, ""),
        edited=any(
            entry.get("manager") != MANAGER
            and entry.get("subresource") != "status"
            and "f:spec" in (entry.get("fieldsV1") or {})
            for entry in fields
        ),
        deleting=is_deleting(found),
        generation=int(dig(found, "metadata", "generation") or 0),
        policy=str(dig(found, "spec", "podManagementPolicy") or ""),
        address=str(dig(found, "spec", "clusterIP") or ""),
        status=dict(found.get("status") or {}),
    )


@dataclass(frozen=True)
class Event:
    """A Kubernetes event about one object."""

    uid: str
    name: str
    about_kind: str
    about_name: str
    about_uid: str
    warning: bool
    reason: str
    message: str
    count: int
    first: datetime | None
    last: datetime | None
    source: str


def parse_event(body: Object) -> Event:
    """An event as Kubernetes writes it."""
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
        first=parse_time(body.get("firstTimestamp") or at),
        last=parse_time(dig(body, "series", "lastObservedTime") or body.get("lastTimestamp") or at),
        source=str(dig(body, "source", "component") or body.get("reportingComponent") or ""),
    )


@dataclass(frozen=True)
class ClusterState:
    """The objects around one resource, as the watches last saw them."""

    now: datetime
    children: Mapping[tuple[str, str], Child] = field(default_factory=dict)
    """By kind and name: the objects that have the name of a child, also foreign ones."""
    pods: Sequence[Object] = ()
    """Pods of the resource's workload, newest last."""
    claims: Mapping[str, Object] = field(default_factory=dict)
    holders: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """Pods by the claim that they mount."""
    events: Sequence[Event] = ()
    """Events of children and their Pods, newest last."""
    restricted: bool = False
    """Whether the namespace enforces the Pod Security Standard `restricted`."""

    def owned_child(self, parent: Object, kind: str, name: str) -> Child | None:
        """The child, if it belongs to this parent and does not only have the name."""
        found = self.children.get((kind, name))
        return found if found and found.owner == uid_of(parent) else None


@dataclass(frozen=True)
class Decision:
    status: Json
    children: tuple[Json, ...] = ()
    """In the order of creation: first those whose names may conflict with other kinds."""
    restart: tuple[Json, ...] = ()
    """Pods to delete, so that their workload creates them again."""
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """To set on the resource itself; None removes one."""


def make_manifest(
    parent: Object,
    api: str,
    kind: str,
    name: str,
    spec: Json,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A child, owned by its parent and annotated with the digest of its manifest."""
    made: Json = {
        "apiVersion": api,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace_of(parent),
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
            "ownerReferences": [owner_reference(parent)],
        },
        "spec": spec,
    }
    made["metadata"]["annotations"][DIGEST] = digest_of(made)
    return made


def owner_reference(parent: Object) -> Json:
    return {
        "apiVersion": parent["apiVersion"],
        "kind": parent["kind"],
        "name": name_of(parent),
        "uid": uid_of(parent),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def find_name_conflict(
    parent: Object, wanted: Sequence[Object], cluster: ClusterState
) -> Child | None:
    """An object that has the name of a desired child but belongs to another owner."""
    for child in wanted:
        found = cluster.children.get((child["kind"], name_of(child)))
        if found and found.owner != uid_of(parent):
            return found
    return None


def is_stopped(resource: Object) -> bool:
    return STOPPED in annotations_of(resource)

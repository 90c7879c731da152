"""What a decision is made from, and what it says.

A decision is a plain function of one resource and the world around it. It names every child that
is wanted, whole, and the status that is true now; what to do about the difference is the business
of `reconciling`. So a decision can be made again at any time, by anybody, and comes out the same.
"""

from __future__ import annotations

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
    is_leaving,
    name_of,
    namespace_of,
    uid_of,
)

DIGEST = "clew.dev/digest"
"""On each child: which manifest it was made from. A change of what is wanted shows, also one that
only takes something away."""

MANAGER = "clew-operator"
"""By this name Kubernetes knows which fields are ours."""

STOPPED = "kubeflow-resource-stopped"
RESTART = "notebooks.opendatahub.io/notebook-restart"


@dataclass(frozen=True)
class Child:
    """What is known of an object that bears the name of a child, whoever made it."""

    kind: str
    name: str
    uid: str
    owner: str
    """The uid of what controls it; empty: nobody does."""
    digest: str
    edited: bool
    """Somebody else than we wrote into its spec."""
    leaving: bool
    generation: int
    """Of its spec; each change of that counts it up."""
    policy: str
    """How a StatefulSet was told to manage its Pods, which cannot be changed any more."""
    address: str
    """Where a Service is reached inside the cluster."""
    status: Json = field(hash=False)


def child_of(found: Object) -> Child:
    """An object of the cluster as much as decisions need of it."""
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
        leaving=is_leaving(found),
        generation=int(dig(found, "metadata", "generation") or 0),
        policy=str(dig(found, "spec", "podManagementPolicy") or ""),
        address=str(dig(found, "spec", "clusterIP") or ""),
        status=dict(found.get("status") or {}),
    )


@dataclass(frozen=True)
class Event:
    """Something that Kubernetes said of one object."""

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


@dataclass(frozen=True)
class World:
    """What surrounds one resource, as it was seen last."""

    now: datetime
    children: Mapping[tuple[str, str], Child] = field(default_factory=dict)
    """By kind and name, those whose names ours would have."""
    pods: Sequence[Object] = ()
    """Pods of our workload, newest last."""
    claims: Mapping[str, Object] = field(default_factory=dict)
    holders: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """Pods by the claim that they have as a volume."""
    events: Sequence[Event] = ()
    """Of children and their Pods, newest last."""
    restricted: bool = False
    """Whether the namespace enforces the Pod Security Standard `restricted`."""

    def own(self, parent: Object, kind: str, name: str) -> Child | None:
        """A child that is ours and does not only have its name."""
        found = self.children.get((kind, name))
        return found if found and found.owner == uid_of(parent) else None


@dataclass(frozen=True)
class Decision:
    status: Json
    children: tuple[Json, ...] = ()
    """In the order in which they are to be made: what other kinds may fight for comes first."""
    restart: tuple[Json, ...] = ()
    """Pods to delete, which are made again."""
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """To be set on the resource itself; None takes one away."""


def manifest(
    parent: Object,
    api: str,
    kind: str,
    name: str,
    spec: Json,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A child, owned by its parent and signed with what it was made from."""
    made: Json = {
        "apiVersion": api,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace_of(parent),
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
            "ownerReferences": [
                {
                    "apiVersion": parent["apiVersion"],
                    "kind": parent["kind"],
                    "name": name_of(parent),
                    "uid": uid_of(parent),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec,
    }
    made["metadata"]["annotations"][DIGEST] = digest_of(made)
    return made


def taken(parent: Object, wanted: Sequence[Object], world: World) -> Child | None:
    """A child's name that somebody else has, or that we ourselves still have to lose."""
    for child in wanted:
        found = world.children.get((child["kind"], name_of(child)))
        if found and found.owner != uid_of(parent):
            return found
    return None


def is_stopped(resource: Object) -> bool:
    return STOPPED in annotations_of(resource)

"""Where a Pod has to go so that it can have a volume which only one node can hold.

A claim that may be mounted on one node alone is held by the Pods that are there already.
TensorBoards and viewers come to it: while somebody else has the claim they are *required* on that
node, and when it moves they follow; nobody else has it: they are free. Two of them do not wait for
each other: the younger goes to the older.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from clew.kube.controller.model import World
from clew.kube.objects import Json, Object, dig, is_leaving, labels_of, name_of, uid_of

FOLLOWS = "clew.dev/follows-volume"
"""A label of Pods that come to a volume: when the resource they belong to was made, and its uid."""

_SHARED = {"ReadWriteMany", "ReadOnlyMany"}


def rank(resource: Object) -> str:
    """Older resources come first; of two of the same second, either, but always the same one."""
    made = str(resource["metadata"].get("creationTimestamp", ""))
    digits = "".join(c for c in made if c.isdigit())
    return f"{digits}-{uid_of(resource)}"


def node_for(claim: str, follower: str, world: World) -> str | None:
    """The node that a follower of this rank is required on; None: it may go anywhere."""
    found = world.claims.get(claim)
    modes = set(dig(found, "status", "accessModes") or dig(found, "spec", "accessModes") or ())
    if not modes or modes & _SHARED:
        return None
    holding = [pod for pod in world.holders.get(claim, ()) if _holds(pod, follower)]
    holding.sort(key=_weight)
    return str(dig(holding[0], "spec", "nodeName")) if holding else None


def _holds(pod: Object, follower: str) -> bool:
    if not dig(pod, "spec", "nodeName") or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return False
    other = labels_of(pod).get(FOLLOWS)
    return other is None or other < follower


def _weight(pod: Object) -> tuple[bool, bool, bool, str]:
    """Who decides: those who do not follow themselves, stay, and run."""
    return (
        FOLLOWS in labels_of(pod),
        is_leaving(pod),
        dig(pod, "status", "phase") != "Running",
        name_of(pod),
    )


def required_on(node: str, affinity: Object | None) -> Json:
    """An affinity with one more demand. Terms are alternatives, so the demand joins each of them;
    a node is asked for by its own name, since its label for hosts may have another."""
    made: Json = copy.deepcopy(dict(affinity or {}))
    rules = made.setdefault("nodeAffinity", {})
    demand = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = rules.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms: Sequence[Json] = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*term.get("matchFields", ()), demand]} for term in terms
    ]
    return made

"""The node on which a Pod must run so that it can mount a ReadWriteOnce volume.

Such a claim can be mounted on one node only: that of the Pods that use it already. While another
Pod has the claim mounted, TensorBoards and viewers are *required* on its node, and follow it when
it moves; otherwise they may run anywhere. Of two followers, the younger follows the older, so they
do not wait for each other.
"""

import copy
from collections.abc import Sequence

from clew.kube.controller.model import ClusterState
from clew.kube.objects import Json, Object, dig, is_deleting, labels_of, name_of, uid_of

FOLLOWS_LABEL = "clew.dev/follows-volume"
"""A label of Pods that follow a volume: the creation time and the uid of their resource."""

_SHARED = {"ReadWriteMany", "ReadOnlyMany"}


def follower_rank(resource: Object) -> str:
    """Sorts older resources first; the uid orders those of the same second."""
    made = str(resource["metadata"].get("creationTimestamp", ""))
    digits = "".join(c for c in made if c.isdigit())
    return f"{digits}-{uid_of(resource)}"


def node_for(claim: str, follower: str, cluster: ClusterState) -> str | None:
    """The node that a follower of this rank is required on; None: it may run anywhere."""
    found = cluster.claims.get(claim)
    modes = set(dig(found, "status", "accessModes") or dig(found, "spec", "accessModes") or ())
    if not modes or modes & _SHARED:
        return None
    holding = [pod for pod in cluster.holders.get(claim, ()) if _holds(pod, follower)]
    holding.sort(key=_precedence)
    return str(dig(holding[0], "spec", "nodeName")) if holding else None


def _holds(pod: Object, follower: str) -> bool:
    if not dig(pod, "spec", "nodeName") or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
        return False
    other = labels_of(pod).get(FOLLOWS_LABEL)
    return other is None or other < follower


def _precedence(pod: Object) -> tuple[bool, bool, bool, str]:
    """The first Pod decides: one that is not a follower, is not being deleted, and runs."""
    return (
        FOLLOWS_LABEL in labels_of(pod),
        is_deleting(pod),
        dig(pod, "status", "phase") != "Running",
        name_of(pod),
    )


def require_node(node: str, affinity: Object | None) -> Json:
    """The affinity with one more requirement. Terms are alternatives, so it is added to each of
    them. It matches the name of the node, since the hostname label may differ from it."""
    made: Json = copy.deepcopy(dict(affinity or {}))
    rules = made.setdefault("nodeAffinity", {})
    demand = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = rules.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms: Sequence[Json] = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*term.get("matchFields", ()), demand]} for term in terms
    ]
    return made

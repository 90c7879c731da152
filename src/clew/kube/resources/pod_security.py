"""What the Pod Security Standard `restricted` asks of a Pod.

The Pods that are ours always have it. A Pod that a user wrote gets what it leaves open, and only in
a namespace that enforces the standard: there it would be refused otherwise, and elsewhere an image
that runs as root goes on running.
"""

from __future__ import annotations

from clew.kube.objects import Json, Object, labels_of

_ENFORCE = "pod-security.kubernetes.io/enforce"


def enforces_restricted(namespace: Object) -> bool:
    return labels_of(namespace).get(_ENFORCE) == "restricted"


def restrict(pod: Json) -> Json:
    """Fill in, in place, what the standard needs and the Pod does not say itself."""
    of_pod = pod["securityContext"] = dict(pod.get("securityContext") or {})
    of_pod.setdefault("runAsNonRoot", True)
    of_pod.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    for container in (*pod["containers"], *(pod.get("initContainers") or ())):
        own = container["securityContext"] = dict(container.get("securityContext") or {})
        own.setdefault("allowPrivilegeEscalation", False)
        own["capabilities"] = {"drop": ["ALL"], **(own.get("capabilities") or {})}
    return pod

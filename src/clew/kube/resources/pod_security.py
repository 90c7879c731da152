"""The security settings that the Pod Security Standard `restricted` requires.

Our own Pods always have them. A user's Pod gets those it does not set, and only in a namespace that
enforces the standard: there it would be rejected otherwise; elsewhere an image that runs as root
keeps working.
"""

from clew.kube.objects import Json, Object, labels_of

_ENFORCE = "pod-security.kubernetes.io/enforce"


def enforces_restricted(namespace: Object) -> bool:
    return labels_of(namespace).get(_ENFORCE) == "restricted"


def restrict(pod: Json) -> Json:
    """Add, in place, the settings that the standard requires and the Pod does not set."""
    of_pod = pod["securityContext"] = dict(pod.get("securityContext") or {})
    of_pod.setdefault("runAsNonRoot", True)
    of_pod.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    for container in (*pod["containers"], *(pod.get("initContainers") or ())):
        context = container["securityContext"] = dict(container.get("securityContext") or {})
        context.setdefault("allowPrivilegeEscalation", False)
        context["capabilities"] = {"drop": ["ALL"], **(context.get("capabilities") or {})}
    return pod

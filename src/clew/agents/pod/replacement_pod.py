"""A Pod to create in place of one that runs: with the same spec, and the annotation. No IO."""

import copy
from typing import Any

from clew.agents.pod.file_sidecar_names import ANNOTATION, SIDECAR
from clew.kube.objects import Json, Object, dig, labels_of

_ACCESS = "kube-api-access-"
"""How the volume begins that Kubernetes adds to each Pod, and adds again."""
_OF_THE_RUN = ("nodeName", "ephemeralContainers")


def copy_pod(pod: Object) -> Json:
    """The Pod as its user would create it again. Where it runs is decided again, too."""
    about: Json = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    about["labels"] = dict(labels_of(pod))
    about["annotations"] = {**(dig(pod, "metadata", "annotations") or {}), ANNOTATION: SIDECAR}
    spec: Json = copy.deepcopy(dict(pod["spec"]))
    for field in _OF_THE_RUN:
        spec.pop(field, None)
    spec["volumes"] = _without_access(spec.get("volumes"))
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            container["volumeMounts"] = _without_access(container.get("volumeMounts"))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def _without_access(named: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [one for one in named or () if not str(one.get("name")).startswith(_ACCESS)]

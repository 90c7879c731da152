"""The sidecar in a Pod, as a change of its spec. No IO.

The result depends on the Pod and its annotations alone, and a Pod that has the sidecar already is
given the same one again: a second call changes nothing, and no user can put something else in
its place under its name.
"""

import copy
from collections.abc import Iterator
from typing import Any

from clew.agents.sidecars.envoy_config import (
    FLUSH_MILLISECONDS,
    PORT,
    EnvoyOptions,
    write_config,
)
from clew.agents.sidecars.pod_options import PodOptions, read_options
from clew.agents.sidecars.traffic_sidecar_names import (
    CA_VOLUME,
    CONTAINER,
    LABEL,
    LOG,
    LOG_DIRECTORY,
    LOG_VOLUME,
    OWN_NAMES,
    REDIRECT,
    USER,
)
from clew.errors import NotAllowed
from clew.kube.objects import Json, Object, annotations_of, dig, labels_of

_CA_DIRECTORY = "/etc/clew/ca"
_LOG_LIMIT = "1Gi"
_MEMORY = "256Mi"


def accepts_sidecar(pod: Object) -> bool:
    """Whether a Pod may have a sidecar. Its own label `false` is stronger than its namespace's. In
    the network of the node, the redirection would be the node's."""
    return labels_of(pod).get(LABEL) != "false" and not dig(pod, "spec", "hostNetwork")


def inject_sidecar(pod: Object, *, image: str) -> Json | None:
    """The Pod with the sidecar; None if it may have none. Raises NotAllowed for a Pod that could
    write the log itself or evade it, and UsageError for an annotation that is malformed."""
    if not accepts_sidecar(pod):
        return None
    options = read_options(annotations_of(pod))
    changed: Json = copy.deepcopy(dict(pod))
    spec = changed["spec"]
    for group in ("initContainers", "containers", "ephemeralContainers", "volumes"):
        if group in spec:
            spec[group] = [one for one in spec[group] or () if one.get("name") not in OWN_NAMES]
    _check(spec)
    spec["initContainers"] = [
        _redirect(image),
        _sidecar(image, options),
        *spec.get("initContainers", ()),
    ]
    spec["volumes"] = [*spec.get("volumes", ()), *_volumes(options)]
    return changed


def _check(spec: Json) -> None:
    for container in _all_containers(spec):
        name = str(container.get("name"))
        mounts = (str(one.get("name")) for one in container.get("volumeMounts") or ())
        if OWN_NAMES.intersection(mounts):
            raise NotAllowed(
                f"the container {name} mounts the log of the sidecar",
                hint=f"remove the mount, or label the Pod {LABEL}=false",
            )
        for field, noun in (("runAsUser", "user"), ("runAsGroup", "group")):
            own = dig(container, "securityContext", field)
            if (dig(spec, "securityContext", field) if own is None else own) == USER:
                raise NotAllowed(
                    f"the container {name} runs as the {noun} {USER}, which is the sidecar's",
                    hint=f"choose another {noun}, or label the Pod {LABEL}=false",
                )


def _all_containers(spec: Json) -> Iterator[Json]:
    for group in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(group) or ()


def _redirect(image: str) -> Json:
    """Redirects what the Pod sends by TCP to the sidecar, then ends."""
    return {
        "name": REDIRECT,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["clew-redirect", str(PORT), str(USER)],
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"memory": "64Mi"},
        },
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]},
        },
    }


def _sidecar(image: str, options: PodOptions) -> Json:
    mounts = [{"name": LOG_VOLUME, "mountPath": LOG_DIRECTORY}]
    envoy = EnvoyOptions(log=f"{LOG_DIRECTORY}/{LOG}", tls_hosts=options.tls_hosts)
    if options.certificates:
        mounts.append({"name": CA_VOLUME, "mountPath": _CA_DIRECTORY})
        envoy = envoy._replace(ca_file=f"{_CA_DIRECTORY}/ca.crt")
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": ["clew-sidecar", str(FLUSH_MILLISECONDS)],
        # Kubernetes would replace $(NAME) in it by a variable.
        "args": [write_config(envoy).replace("$(", "$$(")],
        # The Pod's own containers start when the sidecar listens.
        "lifecycle": {"postStart": {"exec": {"command": ["clew-sidecar-ready", str(PORT)]}}},
        "resources": {
            "requests": {"cpu": "20m", "memory": "64Mi"},
            "limits": {"memory": _MEMORY},
        },
        "securityContext": {
            "runAsUser": USER,
            "runAsGroup": USER,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }


def _volumes(options: PodOptions) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": LOG_VOLUME, "emptyDir": {"sizeLimit": _LOG_LIMIT}},
    ]
    if options.certificates:
        volumes.append({"name": CA_VOLUME, "configMap": {"name": options.certificates}})
    return volumes

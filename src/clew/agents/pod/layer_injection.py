"""The file witness in a Pod, as a change of its spec. No IO.

Each container that mounts a claim runs its command below the wrapper, which makes the layers; a
sidecar serves them. The Pod needs no privilege that Pod Security `baseline` does not permit.
"""

import copy
from collections.abc import Iterator
from typing import Any

from clew.agents.pod.file_sidecar_names import (
    ACCESS_VOLUME,
    ANNOTATION,
    CONTAINER,
    DIRECTORY,
    OWN_NAMES,
    POLICY,
    POLICY_VOLUME,
    SECRET,
    SIDECAR,
    SOCKET,
    STATE_VOLUME,
    VOLUME,
    WRAPPER,
)
from clew.errors import NotAllowed
from clew.kube.objects import Json, Object, annotations_of

_STATE = "/var/lib/clew"
_POLICY = "/etc/clew"
_ACCESS = "/var/run/secrets/kubernetes.io/serviceaccount"
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SETGID", "SETUID")
"""What the sidecar does for any user of a container: open and make files, and map users."""
_TOKEN_SECONDS = 3607


def accepts_layer(pod: Object) -> bool:
    """Whether a Pod asks for the file witness."""
    return annotations_of(pod).get(ANNOTATION) == SIDECAR


def inject_layer(pod: Object, *, image: str, device: str) -> Json | None:
    """The Pod with the file witness; None if it does not ask for it, or mounts no claim. Raises
    NotAllowed if a container mounts a claim and its command is the image's, which only the runtime
    knows. `device`: the extended resource that gives a container /dev/fuse."""
    if not accepts_layer(pod):
        return None
    changed: Json = copy.deepcopy(dict(pod))
    spec = changed["spec"]
    for group in ("initContainers", "containers", "volumes"):
        if group in spec:
            spec[group] = [one for one in spec[group] or () if one.get("name") not in OWN_NAMES]
    claims = {
        str(one.get("name"))
        for one in spec.get("volumes") or ()
        if "persistentVolumeClaim" in one or "ephemeral" in one
    }
    wrapped = False
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            _unwrap(container)
            points = sorted(_points(container, claims))
            if points:
                _wrap(container, points, device)
                wrapped = True
    if not wrapped:
        return None
    spec["initContainers"] = [_sidecar(image), *spec.get("initContainers", ())]
    spec["volumes"] = [*spec.get("volumes", ()), *_volumes()]
    return changed


def _points(container: Json, claims: set[str]) -> Iterator[str]:
    """Where a container has a claim. A layer would hide what is mounted below it, so such a volume
    gets none, and the sidecar reports it."""
    every = [str(one.get("mountPath")).rstrip("/") for one in container.get("volumeMounts") or ()]
    for one in container.get("volumeMounts") or ():
        point = str(one.get("mountPath")).rstrip("/")
        if one.get("name") in claims and not any(other.startswith(f"{point}/") for other in every):
            yield point


def _wrap(container: Json, points: list[str], device: str) -> None:
    name = str(container.get("name"))
    if not container.get("command"):
        raise NotAllowed(
            f"the container {name} has the command of its image, which is not known here",
            hint=f"write it into `command` of the container, or remove the annotation {ANNOTATION}",
        )
    container["command"] = [WRAPPER, SOCKET, name, *points, "--", *container["command"]]
    mount = {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}
    container["volumeMounts"] = [*container["volumeMounts"], mount]
    resources = container["resources"] = dict(container.get("resources") or {})
    for kind in ("requests", "limits"):
        resources[kind] = {**(resources.get(kind) or {}), device: "1"}


def _unwrap(container: Json) -> None:
    """As it was before: the webhook may be called twice."""
    command = list(container.get("command") or ())
    if command[:1] == [WRAPPER] and "--" in command:
        container["command"] = command[command.index("--") + 1 :]
    if container.get("volumeMounts"):
        mounts = container["volumeMounts"]
        container["volumeMounts"] = [one for one in mounts if one.get("name") not in OWN_NAMES]


def _sidecar(image: str) -> Json:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "args": ["agent", "pod", f"--state={_STATE}", f"--policy={_POLICY}/policy.toml"],
        "env": [
            _field("POD_NAMESPACE", "metadata.namespace"),
            _field("POD_NAME", "metadata.name"),
            _field("NODE_NAME", "spec.nodeName"),
            _secret("CLEW_SERVER", "server"),
            _secret("CLEW_TOKEN", "token"),
        ],
        # The Pod's own containers start when it takes over layers.
        "startupProbe": {
            "exec": {"command": ["test", "-S", SOCKET]},
            "periodSeconds": 1,
            "failureThreshold": 120,
        },
        "resources": {
            "requests": {"cpu": "20m", "memory": "96Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"add": list(_CAPABILITIES), "drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": VOLUME, "mountPath": DIRECTORY},
            {"name": STATE_VOLUME, "mountPath": _STATE},
            {"name": POLICY_VOLUME, "mountPath": _POLICY, "readOnly": True},
            {"name": ACCESS_VOLUME, "mountPath": _ACCESS, "readOnly": True},
        ],
    }


def _field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _secret(name: str, key: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": SECRET, "key": key}}}


def _volumes() -> list[dict[str, Any]]:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}}
    authority = {
        "configMap": {
            "name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}],
        }
    }
    item = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    return [
        {"name": VOLUME, "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": STATE_VOLUME, "emptyDir": {}},
        {"name": POLICY_VOLUME, "configMap": {"name": POLICY, "optional": True}},
        {
            "name": ACCESS_VOLUME,
            "projected": {
                "defaultMode": 0o400,
                "sources": [token, authority, {"downwardAPI": {"items": [item]}}],
            },
        },
    ]

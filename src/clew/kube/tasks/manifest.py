"""The manifest of a task's Pod, without IO.

It has no token of a service account, no access to its node, and no privileges: a pipeline has no
field for those. What its namespace forbids beyond that, Kubernetes refuses.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.kube.objects import Json
from clew.kube.resources.pod_security import restrict
from clew.kube.tasks import task_pod
from clew.kube.tasks.task_pod import (
    ClaimVolume,
    ConfigMapVolume,
    EmptyVolume,
    EphemeralVolume,
    Helper,
    Mount,
    SecretVolume,
    TaskPod,
    Volume,
)

_STEP = "clew-step"
"""In the PATH of the helper's image."""
_HELPER_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")
"""It runs as root, because the task may run as any user, with no more than files need."""
_RESTRICTED_USER = 1000
"""Runs both containers where nobody may be root: then each can read what the other wrote."""


def build_manifest(pod: TaskPod, *, restricted: bool = False) -> Json:
    """`restricted`: the namespace enforces the Pod Security Standard of this name."""
    if not pod.command:
        raise ValueError("a Pod of a task needs a command")
    volumes = _Volumes(pod)
    spec: Json = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # The order matters: the second is created when the first has run its hook.
        "containers": [_helper(pod.helper), _main(pod, volumes)],
        "volumes": volumes.manifests,
    }
    optional: Json = {
        "activeDeadlineSeconds": pod.deadline,
        "schedulerName": pod.scheduler,
        "nodeSelector": dict(pod.node_selector),
        "tolerations": [dict(one) for one in pod.tolerations],
        "affinity": dict(pod.affinity),
        "imagePullSecrets": [{"name": name} for name in pod.pull_secrets],
    }
    spec |= _without_empty(optional)
    if restricted:
        user = pod.run_as_user or _RESTRICTED_USER
        spec["securityContext"] = {"runAsUser": user, "fsGroup": pod.run_as_group or user}
        helper = spec["containers"][0]
        helper["securityContext"] = {"runAsUser": user}
        restrict(spec)
    labels = {
        **pod.labels,
        task_pod.RUN_LABEL: pod.run,
        task_pod.TASK_LABEL: task_pod.task_label(pod.task),
    }
    annotations = {**pod.annotations, task_pod.TASK_ANNOTATION: pod.task}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def _helper(helper: Helper) -> Json:
    install = {"exec": {"command": [_STEP, "--install", task_pod.STEP]}}
    made: Json = {
        "name": task_pod.HELPER,
        "image": helper.image,
        "imagePullPolicy": helper.pull_policy,
        "command": list(helper.command),
        "env": _variables(helper.env),
        "volumeMounts": list(_shared_mounts()),
        "lifecycle": {"postStart": install},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": list(_HELPER_CAPABILITIES)},
        },
    }
    if helper.secret:
        made["envFrom"] = [{"secretRef": {"name": helper.secret}}]
    return made | _resources(helper.requests, helper.limits)


def _main(pod: TaskPod, volumes: "_Volumes") -> Json:
    made: Json = {
        "name": task_pod.MAIN,
        "image": pod.image,
        "command": [task_pod.STEP, "--", *map(_escape, pod.command)],
        "args": list(map(_escape, pod.args)),
        "env": [
            *_variables(pod.env),
            *({"name": o.name, "valueFrom": _key(o)} for o in pod.key_variables),
            *(
                {"name": o.name, "valueFrom": {"fieldRef": {"fieldPath": o.path}}}
                for o in pod.field_variables
            ),
        ],
        "volumeMounts": [*_shared_mounts(), *map(volumes.mount, pod.mounts)],
    }
    security = _without_empty(
        {
            "runAsUser": pod.run_as_user,
            "runAsGroup": pod.run_as_group,
            "runAsNonRoot": pod.run_as_non_root,
        }
    )
    optional: Json = {"imagePullPolicy": pod.pull_policy, "securityContext": security}
    return made | _without_empty(optional) | _resources(pod.requests, pod.limits)


def _escape(word: str) -> str:
    """Kubernetes would replace `$(NAME)`, and `$$` by `$`, in words that are complete already."""
    return word.replace("$", "$$")


def _variables(env: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": _escape(value)} for name, value in env.items()]


def _key(variable: task_pod.KeyVariable) -> Json:
    field = {"secret": "secretKeyRef", "configmap": "configMapKeyRef"}[variable.kind]
    found: Json = {"name": variable.source, "key": variable.key}
    return {field: found | ({"optional": True} if variable.optional else {})}


def _resources(requests: Mapping[str, str], limits: Mapping[str, str]) -> Json:
    found = _without_empty({"requests": dict(requests), "limits": dict(limits)})
    return {"resources": found} if found else {}


def _shared_mounts() -> Iterator[Json]:
    for path in task_pod.SHARED:
        yield {"name": f"shared-{path.strip('/')}", "mountPath": path}


class _Volumes:
    """The volumes of a Pod: one for equal sources, whatever their mounts."""

    def __init__(self, pod: TaskPod) -> None:
        self._names: dict[str, str] = {}
        self.manifests: list[Json] = [
            {"name": one["name"], "emptyDir": {}} for one in _shared_mounts()
        ]
        for mount in pod.mounts:
            source = _volume(mount.volume)
            key = repr(mount.volume)
            if key not in self._names:
                self._names[key] = f"v{len(self._names)}"
                self.manifests.append({"name": self._names[key], **source})

    def mount(self, mount: Mount) -> Json:
        made: Json = {"name": self._names[repr(mount.volume)], "mountPath": mount.path}
        return made | ({"subPath": mount.sub_path} if mount.sub_path else {})


def _volume(volume: Volume) -> Json:
    match volume:
        case SecretVolume(name=name, optional=optional):
            return {"secret": {"secretName": name} | ({"optional": True} if optional else {})}
        case ConfigMapVolume(name=name, optional=optional):
            return {"configMap": {"name": name} | ({"optional": True} if optional else {})}
        case ClaimVolume(claim=claim):
            return {"persistentVolumeClaim": {"claimName": claim}}
        case EmptyVolume(medium=medium, size=size):
            return {"emptyDir": _without_empty({"medium": medium, "sizeLimit": size})}
        case EphemeralVolume():
            return {"ephemeral": {"volumeClaimTemplate": _claim_template(volume)}}


def _claim_template(volume: EphemeralVolume) -> Json:
    metadata = {"labels": dict(volume.labels), "annotations": dict(volume.annotations)}
    spec: Json = {
        "accessModes": list(volume.access_modes),
        "resources": {"requests": {"storage": volume.size}},
    }
    if volume.storage_class is not None:
        spec["storageClassName"] = volume.storage_class
    return {"spec": spec} | _without_empty({"metadata": _without_empty(metadata)})


def _without_empty(fields: Mapping[str, Any]) -> Json:
    return {name: value for name, value in fields.items() if value not in (None, "", {}, [])}

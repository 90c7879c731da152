"""Check resources as the API server of a cluster would, and refuse what this machine cannot do."""

import re
from collections.abc import Mapping
from typing import Any

from clew.errors import NotFound, UsageError
from clew.kube.objects import Object, annotations_of, dig, labels_of
from clew.kube.resources.name_check import check_name
from clew.kube.resources.tensorboards import parse_logspath
from clew.workloads.forms.notebook_volumes import (
    check_claim_name,
    check_claim_spec,
    check_mount_path,
)
from clew.workloads.local.resource_files import NAMESPACE, STORED_KINDS

_MAX_TEXT = 256 << 10
_MAX_NAME = 63
_VOLUME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)


def check_namespace(namespace: str) -> None:
    if namespace != NAMESPACE:
        raise NotFound(f"there is no namespace {namespace[:100]}", hint=f"use {NAMESPACE}")


def check_resource(resource: Object) -> None:
    """Raise UsageError if a resource is not valid here."""
    kind, metadata = resource.get("kind"), resource.get("metadata")
    if kind not in STORED_KINDS or not isinstance(metadata, Mapping):
        raise UsageError(f"this machine cannot have a {str(kind)[:80]}")
    if not isinstance(resource.get("spec"), Mapping):
        raise UsageError("spec is missing")
    check_namespace(str(metadata.get("namespace") or NAMESPACE))
    _check_texts(labels_of(resource))
    _check_texts(annotations_of(resource))
    _check_name(str(kind), metadata.get("name"))
    _CHECKS[str(kind)](resource["spec"])


def _check_texts(texts: Any) -> None:
    if not isinstance(texts, Mapping) or not all(isinstance(v, str) for v in texts.values()):
        raise UsageError("labels and annotations must be texts")
    if sum(len(str(name)) + len(value) for name, value in texts.items()) > _MAX_TEXT:
        raise UsageError("labels and annotations are larger than 256 KiB")


def _check_name(kind: str, name: Any) -> None:
    if kind == "PersistentVolumeClaim":
        if len(check_claim_name(name)) > _MAX_NAME:
            raise UsageError(f"the name is longer than {_MAX_NAME} characters")
        if ".." in name:
            raise UsageError("a name cannot have two dots in a row", hint="choose another name")
    elif not isinstance(name, str):
        raise UsageError("metadata.name is missing")
    elif wrong := check_name(kind, name):
        raise UsageError(wrong, hint="choose another name")


def _check_notebook(spec: Mapping[str, Any]) -> None:
    pod = dig(spec, "template", "spec")
    containers = dig(pod, "containers")
    if not isinstance(containers, list) or not containers:
        raise UsageError("spec.template.spec.containers must have a container")
    for container in containers:
        named = isinstance(container, Mapping) and container.get("name") and container.get("image")
        if not named:
            raise UsageError("each container needs a name and an image")
    if len(containers) > 1 or pod.get("initContainers"):
        raise UsageError("on one machine a notebook has one container", hint="use a cluster")
    _check_volumes(pod.get("volumes") or [], containers[0])
    _check_variables(containers[0].get("env") or [])


def _check_volumes(volumes: Any, container: Mapping[str, Any]) -> None:
    mounts = container.get("volumeMounts") or []
    if not isinstance(volumes, list) or not isinstance(mounts, list):
        raise UsageError("volumes and volumeMounts must be lists")
    names = []
    for volume in volumes:
        name = dig(volume, "name")
        if not isinstance(name, str) or not _VOLUME.fullmatch(name) or name in names:
            raise UsageError("each volume needs a name of its own: small letters, digits, dashes")
        if not {"persistentVolumeClaim", "emptyDir"} & volume.keys():
            raise UsageError(
                f"this machine cannot have the volume {name[:80]}: it is neither a volume of the"
                " list nor an empty directory",
                hint="use a cluster for volumes of other kinds",
            )
        if "persistentVolumeClaim" in volume:
            check_claim_name(dig(volume, "persistentVolumeClaim", "claimName"))
        names.append(name)
    for mount in mounts:
        check_mount_path(dig(mount, "mountPath"))
        if dig(mount, "name") not in names:
            raise UsageError(f"there is no volume {str(dig(mount, 'name'))[:80]} to mount")


def _check_variables(variables: Any) -> None:
    if not isinstance(variables, list):
        raise UsageError("env must be a list")
    for variable in variables:
        name, value = dig(variable, "name"), dig(variable, "value")
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise UsageError("each variable needs a valid name")
        if dig(variable, "valueFrom"):
            raise UsageError(f"the variable {name} must have a value", hint="use a cluster")
        if not isinstance(value or "", str) or "\0" in (value or ""):
            raise UsageError(f"the value of {name} must be a text")


def _check_tensorboard(spec: Mapping[str, Any]) -> None:
    logs = spec.get("logspath")
    if not isinstance(logs, str) or not logs or "\0" in logs:
        raise UsageError("spec.logspath is missing", hint="pvc://VOLUME/PATH or s3://BUCKET/PATH")
    if fault := parse_logspath(logs).fault:
        raise UsageError(fault)


def _check_viewer(spec: Mapping[str, Any]) -> None:
    check_claim_name(spec.get("pvc"))
    if spec.get("podSpec"):
        raise UsageError("this machine has its own viewer: leave podSpec out")


def _check_claim(spec: Mapping[str, Any]) -> None:
    check_claim_spec(dict(spec))
    if spec.get("dataSource") or spec.get("dataSourceRef"):
        raise UsageError("this machine has no snapshots", hint="create an empty volume")


_CHECKS = {
    "Notebook": _check_notebook,
    "Tensorboard": _check_tensorboard,
    "PVCViewer": _check_viewer,
    "PersistentVolumeClaim": _check_claim,
}

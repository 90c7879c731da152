"""What the spec says that a container reads: claims, ConfigMaps, Secrets.

A file of a projected volume, a variable and a mounted directory are all reads of the whole object;
which keys the program looked at is not known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clew.documents.ids import Locator
from clew.prov.cluster.locators import claim_locator, config_map_locator, secret_locator
from clew.witness.kubernetes_audit.object_types import Pod, is_name

_CLUSTER_CERTIFICATES = "kube-root-ca.crt"
"""The ConfigMap that every Pod gets with its token. It says nothing about the result."""


class Inputs(NamedTuple):
    """The places that a container reads, and those of them that it may write."""

    read: tuple[Locator, ...]
    written: tuple[Locator, ...]


def find_inputs(pod: Pod, container: dict[str, Any]) -> Inputs:
    """The inputs of one container of the Pod; `container` is its part of the spec."""
    volumes = {str(volume.get("name")): volume for volume in _objects(pod.spec, "volumes")}
    read: dict[Locator, None] = {}
    written: dict[Locator, None] = {}
    mounts = [*_objects(container, "volumeMounts"), *_objects(container, "volumeDevices")]
    for mount in mounts:
        volume = volumes.get(str(mount.get("name")), {})
        claim = _find_claim(pod, volume)
        if claim is not None:
            read[claim] = None
            if not (
                mount.get("readOnly") or _part(volume, "persistentVolumeClaim").get("readOnly")
            ):
                written[claim] = None
        for locator in _find_configuration(pod.metadata.namespace, volume):
            read[locator] = None
    for locator in _find_variables(pod.metadata.namespace, container):
        read[locator] = None
    return Inputs(tuple(read), tuple(written))


def _find_claim(pod: Pod, volume: dict[str, Any]) -> Locator | None:
    name = _part(volume, "persistentVolumeClaim").get("claimName")
    if "ephemeral" in volume:  # a claim that lives as long as the Pod
        name = f"{pod.metadata.name}-{volume.get('name')}"
    if not isinstance(name, str) or not is_name(name):
        return None
    return claim_locator(pod.metadata.namespace, name)


def _find_configuration(namespace: str, volume: dict[str, Any]) -> list[Locator]:
    sources = _objects(_part(volume, "projected"), "sources")
    has_token = any("serviceAccountToken" in source for source in sources)
    names = [
        ("configMap", _part(volume, "configMap").get("name")),
        ("secret", _part(volume, "secret").get("secretName")),
        *((kind, _part(source, kind).get("name")) for source in sources for kind in _LOCATORS),
    ]
    return [
        _LOCATORS[kind](namespace, name)
        for kind, name in names
        if isinstance(name, str)
        and is_name(name)
        and not (has_token and name == _CLUSTER_CERTIFICATES)
    ]


def _find_variables(namespace: str, container: dict[str, Any]) -> list[Locator]:
    values = [_part(variable, "valueFrom") for variable in _objects(container, "env")]
    names = [
        *((kind, _part(one, f"{kind}KeyRef").get("name")) for one in values for kind in _LOCATORS),
        *(
            (kind, _part(one, f"{kind}Ref").get("name"))
            for one in _objects(container, "envFrom")
            for kind in _LOCATORS
        ),
    ]
    return [
        _LOCATORS[kind](namespace, name)
        for kind, name in names
        if isinstance(name, str) and is_name(name)
    ]


_LOCATORS = {"configMap": config_map_locator, "secret": secret_locator}


def _part(value: dict[str, Any], field: str) -> dict[str, Any]:
    """A member that is an object; else an empty one: a spec is of any shape."""
    part = value.get(field)
    return part if isinstance(part, dict) else {}


def _objects(value: dict[str, Any], field: str) -> list[dict[str, Any]]:
    found = value.get(field)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

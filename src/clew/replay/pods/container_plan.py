"""A Pod of a scratch namespace as containers of one machine, one after the other.

Pure: from the manifest, what each container is started with. What only a cluster has is a problem.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PATH = re.compile(r"/[^,\"\n\r\0]*")
"""Without what has a meaning in the option that mounts a directory."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Of a volume. The API server checks this; here the name becomes that of a directory."""
VARIABLE = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")


@dataclass(frozen=True)
class MountPlan:
    """`kind`: `claim`, `empty`, `config` or `secret`; `name`: of the claim, volume or object."""

    kind: str
    name: str
    path: str
    read_only: bool
    sub_path: str
    items: tuple[tuple[str, str], ...] = ()
    """Keys, and the paths of their files; empty: all, by their keys."""


@dataclass(frozen=True)
class ContainerPlan:
    name: str
    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    directory: str
    user: str
    host: str
    values: tuple[tuple[str, str], ...]
    """Variables with a value."""
    references: tuple[tuple[str, str, str, str], ...]
    """Variables with a value of an object: name, kind, object, key."""
    all_of: tuple[tuple[str, str], ...]
    """ConfigMaps all of whose values are variables, with the prefix of these."""
    mounts: tuple[MountPlan, ...]


def plan_containers(manifest: Mapping[str, Any]) -> tuple[list[ContainerPlan], list[str]]:
    """The containers in their order, and why they cannot run here."""
    spec = manifest["spec"]
    problems = []
    if len(spec["containers"]) > 1:
        problems.append("it has several containers at a time: run it on a cluster")
    before = spec.get("initContainers") or ()
    if any(one.get("restartPolicy") for one in before):
        problems.append("it has a container that runs beside the others: run it on a cluster")
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    if any("projected" in one or "downwardAPI" in one for one in volumes.values()):
        problems.append("it mounts what only a cluster has")
    if not all(map(_NAME.fullmatch, volumes)):
        problems.append("a volume has a name that Kubernetes would not take")
    plans = []
    for container in (*before, *spec["containers"]):
        for mount in container.get("volumeMounts") or ():
            if "subPathExpr" in mount:
                problems.append("the place of a volume depends on a variable")
            if not _is_inside(mount.get("subPath", "")):
                problems.append("a path on a volume leads out of it")
            if not _PATH.fullmatch(mount["mountPath"]):
                problems.append("a volume is mounted at a path that no container can have here")
        names = [variable["name"] for variable in container.get("env") or ()]
        if not all(map(VARIABLE.fullmatch, names)):
            problems.append("a variable has a name that no container can have here")
        plans.append(_plan_container(container, spec, volumes))
    return plans, problems


def _is_inside(sub_path: str) -> bool:
    parts = {*sub_path.rstrip("/").split("/")}
    return not sub_path or (not parts & {"", ".", ".."} and "\0" not in sub_path)


def _plan_container(
    container: Mapping[str, Any], spec: Mapping[str, Any], volumes: Mapping[str, Any]
) -> ContainerPlan:
    security = {**(spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
    user = str(security["runAsUser"]) if "runAsUser" in security else ""
    if user and "runAsGroup" in security:
        user += f":{security['runAsGroup']}"
    values, references = [], []
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        for kind, field in (("config", "configMapKeyRef"), ("secret", "secretKeyRef")):
            if field in source:
                references.append(
                    (variable["name"], kind, source[field]["name"], source[field]["key"])
                )
        if not source:
            values.append((variable["name"], variable.get("value", "")))
    return ContainerPlan(
        name=container["name"],
        image=container["image"],
        command=tuple(container.get("command") or ()),
        arguments=tuple(container.get("args") or ()),
        directory=container.get("workingDir", ""),
        user=user,
        host=spec.get("hostname", ""),
        values=tuple(values),
        references=tuple(references),
        all_of=tuple(
            (source.get("prefix", ""), source["configMapRef"]["name"])
            for source in container.get("envFrom") or ()
            if "configMapRef" in source
        ),
        mounts=tuple(
            _plan_mount(mount, volumes[mount["name"]])
            for mount in container.get("volumeMounts") or ()
            if mount["name"] in volumes
        ),
    )


def _plan_mount(mount: Mapping[str, Any], volume: Mapping[str, Any]) -> MountPlan:
    kind, name, source = "empty", volume["name"], {}
    if "persistentVolumeClaim" in volume:
        source = volume["persistentVolumeClaim"]
        kind, name = "claim", source["claimName"]
    elif "configMap" in volume:
        source = volume["configMap"]
        kind, name = "config", source["name"]
    elif "secret" in volume:
        source = volume["secret"]
        kind, name = "secret", source["secretName"]
    return MountPlan(
        kind=kind,
        name=name,
        path=mount["mountPath"],
        read_only=kind in ("config", "secret") or bool(mount.get("readOnly")),
        sub_path=mount.get("subPath", ""),
        items=tuple((item["key"], item["path"]) for item in source.get("items") or ()),
    )

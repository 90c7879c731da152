"""What to watch of a Pod: from the Pod and its claims as the API server has them, without IO."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from clew.agents.pod.file_sidecar_names import ANNOTATION
from clew.documents.ids import Locator, Uid
from clew.kube.objects import (
    Json,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
    uid_of,
)
from clew.prov.cluster.activity_uids import object_uid
from clew.witness.volumes.volumes import Volume, claim_volume, empty_dir_volume, host_volume

_MIRROR = "kubernetes.io/config.mirror"
_LOCAL_VOLUMES = ("hostPath", "local")
_NAMELESS = "pvc://"
MAX_VOLUMES = 1000


class BoundClaim(Struct, frozen=True):
    """The volume behind a claim."""

    volume: str
    uid: Uid
    created: int
    local: bool = False
    """A directory or disk of one node."""


class PlannedMount(Struct, frozen=True):
    """A volume in a container."""

    volume: Volume
    point: bytes
    prefix: bytes
    """The part of the volume that is mounted; empty: all."""
    read_only: bool
    layer: bool | None = False
    """Put the pass-through layer there; None: if it is a network file system."""
    claim: tuple[str, BoundClaim] | None = None
    """The claim's name, and what it is bound to."""

    def needs_layer(self, *, network: bool) -> bool:
        """`network`: whether it is a network file system."""
        return network if self.layer is None else self.layer


class UnseenVolume(Struct, frozen=True):
    """A volume of a container that cannot be watched."""

    name: str
    why: str
    whole: Locator | None = None
    """None: it has no name in the graph."""

    @property
    def key(self) -> str:
        """What a policy knows it by: as one of a claim, unless it has another name."""
        return self.whole or _NAMELESS


class Choice(Struct, frozen=True):
    """The volumes of a container that a policy selects."""

    mounts: Sequence[PlannedMount] = ()
    unseen: Sequence[UnseenVolume] = ()


class PlannedContainer(Struct, frozen=True):
    name: str
    init: bool
    image: str
    mounts: tuple[PlannedMount, ...]
    user: int | None = None
    """The uid that the Pod asks for; None: the image says."""
    group: int | None = None
    privileged: bool = False
    unseen: tuple[UnseenVolume, ...] = ()


class PlannedPod(Struct, frozen=True):
    uid: Uid
    namespace: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    addresses: tuple[str, ...]
    containers: Mapping[str, PlannedContainer]
    names: Mapping[str, str] = {}
    """The containers that started, by their ids; of each, the last two."""
    has_all_names: bool = False
    """Whether every container has started, and these are all: another id is that of the sandbox."""


def writable_unseen(
    container: PlannedContainer | None, marked: Sequence[PlannedMount]
) -> frozenset[str] | None:
    """The volumes that a container can write where it is not marked; None: it may be any."""
    if container is None or container.unseen:
        return None
    return frozenset(
        one.volume.key for one in container.mounts if not one.read_only and one not in marked
    )


def claims_of(pod: Json) -> list[str]:
    """The names of the claims that a Pod mounts."""
    return sorted(set(_claim_names(pod).values()))


def bound_claim(claim: Json, volume: Json | None) -> BoundClaim | None:
    """What a claim is bound to; None if it is not bound yet."""
    name = dig(claim, "spec", "volumeName")
    uid = object_uid(uid_of(claim))
    if not isinstance(name, str) or not name or uid is None:
        return None
    spec = dig(volume, "spec") or {}
    created = parse_time(dig(claim, "metadata", "creationTimestamp"))
    return BoundClaim(
        volume=name,
        uid=uid,
        created=int(created.timestamp()) * 10**9 if created else 0,
        local=any(kind in spec for kind in _LOCAL_VOLUMES),
    )


def plan_pod(pod: Json, claims: Mapping[str, BoundClaim], *, machine: str) -> PlannedPod | None:
    """None for an object without a uid of a Pod."""
    uid = object_uid(annotations_of(pod).get(_MIRROR) or uid_of(pod))
    if uid is None:
        return None
    spec = dig(pod, "spec") or {}
    volumes, unseen = _volumes(pod, uid, claims, machine)
    witness = annotations_of(pod).get(ANNOTATION)
    bound = {
        volume: (claim, claims[claim])
        for volume, claim in _claim_names(pod).items()
        if claim in claims
    }
    containers = {
        str(one.get("name", "")): _plan_container(
            one, spec, volumes, unseen, bound, witness=witness, init=init
        )
        for init, group in (
            (True, "initContainers"),
            (False, "containers"),
            (False, "ephemeralContainers"),
        )
        for one in spec.get(group) or ()
    }
    statuses = _list_statuses(pod)
    names = {
        str(one["containerID"]).rpartition("/")[2]: str(status.get("name", ""))
        for status in statuses
        for one in (status, *(dig(status, "lastState") or {}).values())
        if one.get("containerID")
    }
    restarts = max((int(status.get("restartCount") or 0) for status in statuses), default=0)
    addresses = [str(one.get("ip", "")) for one in dig(pod, "status", "podIPs") or ()]
    return PlannedPod(
        uid=uid,
        namespace=namespace_of(pod),
        name=name_of(pod),
        labels=labels_of(pod),
        annotations=annotations_of(pod),
        addresses=tuple(address for address in addresses if address),
        containers=containers,
        names=names,
        has_all_names=containers.keys() <= set(names.values()) and restarts <= 1,
    )


def _list_statuses(pod: Json) -> list[Any]:
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [status for kind in kinds for status in dig(pod, "status", kind) or ()]


def _claim_names(pod: Json) -> dict[str, str]:
    """The claim of each volume: one that it names, or one that is made for it."""
    found: dict[str, str] = {}
    for volume in (dig(pod, "spec", "volumes") or ())[:MAX_VOLUMES]:
        if claim := dig(volume, "persistentVolumeClaim", "claimName"):
            found[str(volume["name"])] = str(claim)
        elif "ephemeral" in volume:
            found[str(volume["name"])] = f"{name_of(pod)}-{volume['name']}"
    return found


def _volumes(
    pod: Json, uid: Uid, claims: Mapping[str, BoundClaim], machine: str
) -> tuple[dict[str, Volume], dict[str, str]]:
    found: dict[str, Volume] = {}
    unseen: dict[str, str] = {}
    names = _claim_names(pod)
    for volume in (dig(pod, "spec", "volumes") or ())[:MAX_VOLUMES]:
        name = str(volume.get("name", ""))
        if name in names:
            bound = claims.get(names[name])
            if bound is None:
                unseen[name] = f"the claim {names[name]} was not bound when the container started"
            else:
                namespace = namespace_of(pod)
                found[name] = claim_volume(namespace, names[name], bound.volume, local=bound.local)
        elif "emptyDir" in volume:
            found[name] = empty_dir_volume(uid, name)
        elif path := dig(volume, "hostPath", "path"):
            found[name] = host_volume(machine, str(path).encode())
        elif "nfs" in volume or "csi" in volume:
            unseen[name] = "a volume without a claim has no locator"
    return found, unseen


def _plan_container(
    container: Any,
    spec: Any,
    volumes: Mapping[str, Volume],
    unseen: Mapping[str, str],
    claims: Mapping[str, tuple[str, BoundClaim]],
    *,
    witness: str | None,
    init: bool,
) -> PlannedContainer:
    mounts = []
    missing = []
    for mount in container.get("volumeMounts") or ():
        name = str(mount.get("name", ""))
        if name in unseen:
            missing.append(UnseenVolume(name, unseen[name]))
        elif name in volumes:
            if mount.get("subPathExpr"):
                why = "a part of it is mounted whose name depends on variables"
                missing.append(UnseenVolume(name, why, volumes[name].whole))
                continue
            part = str(mount.get("subPath") or "").strip("/")
            layer = None if witness is None else witness == "fuse"
            mounts.append(
                PlannedMount(
                    volume=volumes[name],
                    point=str(mount.get("mountPath", "")).encode(),
                    prefix=f"/{part}".encode() if part else b"",
                    read_only=bool(mount.get("readOnly")),
                    layer=layer if name in claims else False,
                    claim=claims.get(name),
                )
            )
    return PlannedContainer(
        name=str(container.get("name", "")),
        init=init,
        image=str(container.get("image") or ""),
        mounts=tuple(mounts),
        user=_number(container, spec, "runAsUser"),
        group=_number(container, spec, "runAsGroup"),
        privileged=bool(dig(container, "securityContext", "privileged")),
        unseen=tuple(missing),
    )


def _number(container: Any, spec: Any, name: str) -> int | None:
    """A setting of the security context: the container's, else the Pod's."""
    for one in (container, spec):
        found = dig(one, "securityContext", name)
        if isinstance(found, int):
            return found
    return None

"""What a node knows of a Pod with a sidecar, from the Pod as the API server has it. No IO."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from clew.agents.sidecars.traffic_sidecar_names import CONTAINER, REDIRECT, STORES, USER
from clew.documents.ids import Uid
from clew.kube.objects import Json, annotations_of, dig, labels_of, name_of, namespace_of, uid_of
from clew.prov.cluster.activity_uids import container_uid, object_uid
from clew.witness.object_stores.pod_context import PodContainer, PodContext
from clew.witness.volumes.selection import Subject

MAX_HOSTS = 50
"""In an annotation."""
MAX_CONTAINERS = 500
"""Starts of containers that are remembered: one may restart forever."""


def has_sidecar(pod: Json) -> bool:
    return any(one.get("name") == CONTAINER for one in dig(pod, "spec", "initContainers") or ())


def evades_sidecar(pod: Json) -> bool:
    """Whether a container began with the sidecar's user and group, by its image: the webhook cannot
    know. The kubelet says it from Kubernetes 1.33 on."""
    return any(
        one.get("name") != CONTAINER
        and {dig(one, "user", "linux", "uid"), dig(one, "user", "linux", "gid")} == {USER}
        for group in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for one in dig(pod, "status", group) or ()
    )


def list_subjects(pod: Json) -> list[Subject]:
    """What a policy looks at: the Pod's own containers."""
    addresses = [str(one.get("ip") or "") for one in dig(pod, "status", "podIPs") or ()]
    return [
        Subject(
            namespace=namespace_of(pod),
            pod=name_of(pod),
            container=str(one.get("name") or ""),
            labels=labels_of(pod),
            addresses=addresses,
        )
        for group in ("initContainers", "containers")
        for one in dig(pod, "spec", group) or ()
        if one.get("name") not in (CONTAINER, REDIRECT)
    ]


def read_context(pod: Json, before: PodContext | None = None) -> PodContext | None:
    """None while the sidecar has not started. `before`: what was known earlier; containers that
    the Pod does not name any more ran nevertheless."""
    uid = object_uid(uid_of(pod))
    if uid is None:
        return None
    found = {one.uid: one for one in list_containers(pod, uid)}
    sidecar = next((one for one in found.values() if one.name == CONTAINER), None)
    if sidecar is None:
        return before
    known = {one.uid: one for one in before.containers} if before else {}
    others = known | {key: one for key, one in found.items() if one.name != CONTAINER}
    return PodContext(
        uid=uid,
        namespace=namespace_of(pod),
        name=name_of(pod),
        node=str(dig(pod, "spec", "nodeName") or ""),
        started=read_time(dig(pod, "status", "startTime")) or sidecar.started,
        sidecar=sidecar,
        containers=tuple(sorted(others.values(), key=lambda one: one.started))[-MAX_CONTAINERS:],
        labels=dict(labels_of(pod)),
        stores=tuple(split_list(annotations_of(pod).get(STORES, ""))[:MAX_HOSTS]),
        shared=_runs_several(pod),
        over_ipv6=any(":" in str(one.get("ip")) for one in dig(pod, "status", "podIPs") or ()),
    )


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _runs_several(pod: Json) -> bool:
    """Whether several containers of the Pod run at the same time, besides the sidecar."""
    lasting = [
        one
        for one in dig(pod, "spec", "initContainers") or ()
        if one.get("restartPolicy") == "Always" and one.get("name") != CONTAINER
    ]
    return len(dig(pod, "spec", "containers") or ()) + len(lasting) > 1


def list_containers(pod: Json, uid: Uid) -> Iterator[PodContainer]:
    """The containers of a Pod that have started, and the run before of each."""
    images = {
        one.get("name"): str(one.get("image") or "")
        for group in ("initContainers", "containers")
        for one in dig(pod, "spec", group) or ()
    }
    for group, init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for status in dig(pod, "status", group) or ():
            if status.get("name") == REDIRECT:
                continue
            restart = int(status.get("restartCount") or 0)
            for state, number in (("lastState", restart - 1), ("state", restart)):
                described = dig(status, state) or {}
                found = _container(status, described, uid, max(number, 0), images, init=init)
                if found is not None:
                    yield found


def _container(
    status: Any, state: Any, uid: Uid, restart: int, images: dict[Any, str], *, init: bool
) -> PodContainer | None:
    ended = state.get("terminated") or {}
    running = state.get("running") or {}
    own = ended.get("containerID") or (status.get("containerID") if running else "")
    found = container_uid(uid, str(own or ""))
    started = read_time(running.get("startedAt") or ended.get("startedAt"))
    if found is None or started is None:
        return None
    return PodContainer(
        uid=found,
        name=str(status.get("name") or ""),
        started=started,
        ended=read_time(ended.get("finishedAt")),
        image=images.get(status.get("name"), ""),
        restart=restart,
        init=init,
    )


def read_time(text: Any) -> int | None:
    """Nanoseconds since 1970; None if it is no time."""
    try:
        return int(datetime.fromisoformat(str(text)).timestamp()) * 10**9
    except ValueError:
        return None

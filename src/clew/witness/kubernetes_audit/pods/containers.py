"""The containers of a Pod: an activity for each start, from the states that the node reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.documents.ids import Digest, Uid
from clew.prov.cluster.activity_uids import CONTAINER, container_uid
from clew.prov.cluster.facets import ContainerFacet, write_facet
from clew.prov.cluster.locators import image_digest, image_locator
from clew.prov.events import AnyEvent, Content, Ended, Generated, Started, Used, Version
from clew.witness.kubernetes_audit.audit_event import MAX_NAME
from clew.witness.kubernetes_audit.kubernetes_time import end_of_second
from clew.witness.kubernetes_audit.object_types import ContainerState, ContainerStatus, Pod
from clew.witness.kubernetes_audit.pods.container_inputs import find_inputs
from clew.witness.kubernetes_audit.pods.masked_pod import CONTAINERS, MaskedPod


class _Start(NamedTuple):
    """One start of a container."""

    id: str
    at: int
    restart: int
    state: ContainerState


def describe_containers(uid: Uid, pod: Pod, masked: MaskedPod) -> Iterator[AnyEvent]:
    """The events of all containers of the Pod that have started. `uid`: the Pod's."""
    status = pod.status
    listed = (status.init_container_statuses, status.container_statuses)
    for statuses in (*listed, status.ephemeral_container_statuses):
        for one in statuses or ():
            for start in _starts(one):
                yield from _describe(uid, pod, masked, one, start)


def _starts(status: ContainerStatus) -> Iterator[_Start]:
    """The current start, and the one before."""
    for state, restart in (
        (status.last_state, status.restart_count - 1),
        (status.state, status.restart_count),
    ):
        ended, running = state.terminated, state.running
        begun = ended.started_at if ended else running.started_at if running else None
        container_id = (ended.container_id if ended else "") or (
            status.container_id if state is status.state else ""
        )
        if begun is not None and container_id:
            yield _Start(container_id, end_of_second(begun), max(restart, 0), state)


def _describe(
    uid: Uid, pod: Pod, masked: MaskedPod, status: ContainerStatus, start: _Start
) -> Iterator[AnyEvent]:
    activity = container_uid(uid, start.id)
    if activity is None:
        return
    kind, spec = _find_spec(pod, status.name)
    ended = start.state.terminated
    yield Started(
        execution=uid,
        n=0,
        at=start.at,
        activity=activity,
        kind=CONTAINER,
        parent=uid,
        name=status.name[:MAX_NAME],
        command=masked.commands.get(status.name, ()),
        environment=masked.environments.get(status.name, {}),
        image=str(spec.get("image", status.image))[:MAX_NAME] or None,
        node=str(pod.spec.get("nodeName", ""))[:MAX_NAME] or None,
        facets=write_facet(
            ContainerFacet(name=status.name, restart=start.restart, init=kind == "initContainers")
        ),
    )
    yield from _describe_inputs(uid, activity, pod, spec, start.at)
    yield from _describe_image(uid, activity, status.image_id, start.at)
    if ended is not None and ended.finished_at is not None:
        yield Ended(
            execution=uid,
            n=0,
            at=max(start.at, end_of_second(ended.finished_at)),
            activity=activity,
            status=ended.exit_code,
            signal=ended.signal or None,
            facets={"reason": ended.reason[:MAX_NAME]} if ended.reason else {},
        )


def _describe_inputs(
    uid: Uid, activity: Uid, pod: Pod, spec: dict[str, Any], at: int
) -> Iterator[AnyEvent]:
    inputs = find_inputs(pod, spec)
    for locator in inputs.read:
        yield Used(execution=uid, n=0, at=at, activity=activity, version=Version(locator, uid, 1))
    for locator in inputs.written:
        yield Generated(
            execution=uid, n=0, at=at, activity=activity, version=Version(locator, activity, 1)
        )


def _describe_image(uid: Uid, activity: Uid, image_id: str, at: int) -> Iterator[AnyEvent]:
    """The image by its digest: the tag in the spec may name another one tomorrow."""
    locator, digest = image_locator(image_id), image_digest(image_id)
    if locator is None or digest is None:
        return
    version = Version(locator, uid, 1)
    yield Used(execution=uid, n=0, at=at, activity=activity, version=version, how="exec")
    yield Content(
        execution=uid,
        n=0,
        at=at,
        version=version,
        digest=Digest(digest),
        size=0,
        mode=0,
        mtime=0,
        stored=False,
    )


def _find_spec(pod: Pod, name: str) -> tuple[str, dict[str, Any]]:
    """The list that a container is in, and its part of the spec."""
    for kind in CONTAINERS:
        found = pod.spec.get(kind)
        for one in found if isinstance(found, list) else ():
            if isinstance(one, dict) and one.get("name") == name:
                return kind, one
    return "", {}

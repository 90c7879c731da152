"""Events about the node, its Pods, containers and claims: what the agent watches and missed."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clew.agents.node.containers.watch_plan import (
    BoundClaim,
    PlannedContainer,
    PlannedPod,
    UnseenVolume,
)
from clew.agents.node.containers.watched_container import WatchedContainer
from clew.agents.node.observation_batch import MissedContainer
from clew.documents.ids import Locator, Uid
from clew.prov.cluster.activity_uids import CLAIM, CONTAINER, NODE, POD
from clew.prov.cluster.facets import ClaimFacet, ContainerFacet, PodFacet, write_facet
from clew.prov.cluster.locators import claim_locator, volume_locator
from clew.prov.cluster.watch_declarations import UNWATCHED, WATCHED, WATCHED_TO_END
from clew.prov.events import Alias, AnyEvent, Gap, Looked, Started

FANOTIFY, FUSE = "fanotify", "fuse"


def node_started(uid: Uid, name: str, at: int, facets: Mapping[str, Any]) -> Started:
    """A boot of the node, with its hardware."""
    return Started(
        execution=uid, n=0, at=at, activity=uid, kind=NODE, name=name, facets=dict(facets)
    )


def container_found(container: WatchedContainer, node: str) -> Iterator[AnyEvent]:
    """A container whose volumes are watched, and what of them is not."""
    pod = container.pod
    at = container.process.started
    yield from _started(container.uid, pod, container.planned, at, node)
    for planned in container.planned.mounts:
        if planned.claim is not None:
            yield from claim_bound(pod.namespace, *planned.claim)
    for one in container.mounts:
        whole = one.planned.volume.whole
        how = FANOTIFY if one.layer is None else FUSE
        if container.late:
            what, why = "accesses before the agent began to watch", "the container ran already"
            yield report_gap(container.uid, container.watched_at, what, why, whole)
            yield declare(container.uid, container.watched_at, UNWATCHED, whole, how)
        elif whole in container.complete:
            yield declare(container.uid, container.watched_at, WATCHED, whole, how)
        if one.entry.network and one.layer is None:
            yield report_gap(
                container.uid,
                container.watched_at,
                "what other machines change on the volume",
                "it is on a network file system, where fanotify sees only this node",
                whole,
            )
    for planned, why in container.failures:
        yield report_gap(container.uid, container.watched_at, "accesses", why, planned.volume.whole)
    yield from _report_unseen(container.uid, container.watched_at, container.planned.unseen)


def container_ended(container: WatchedContainer, at: int) -> Iterator[AnyEvent]:
    """All accesses of a container that has ended were seen, unless others declared a loss."""
    for one in container.mounts:
        whole = one.planned.volume.whole
        if whole in container.complete:
            how = FANOTIFY if one.layer is None else FUSE
            yield declare(container.uid, at, WATCHED_TO_END, whole, how)


def container_missed(missed: MissedContainer, at: int, node: str) -> Iterator[AnyEvent]:
    """A container of which nothing was seen, though it should have been."""
    yield from _started(missed.uid, missed.pod, missed.planned, at, node)
    for whole in sorted(missed.wholes):
        yield report_gap(missed.uid, at, "accesses", missed.why, whole)
    yield from _report_unseen(missed.uid, at, missed.unseen)


def containers_lost(node: Uid, at: int) -> Gap:
    """Containers of this node may have come and gone unseen."""
    what, why = "containers that ended at once", "the kernel's queue of new containers was full"
    return Gap(execution=node, n=0, at=at, activity=node, what=what, why=why)


def _report_unseen(container: Uid, at: int, volumes: Iterable[UnseenVolume]) -> Iterator[AnyEvent]:
    for one in volumes:
        what = f"accesses to the volume {one.name}"
        yield report_gap(container, at, what, one.why, one.whole)


def _started(
    uid: Uid, pod: PlannedPod, planned: PlannedContainer | None, at: int, node: str
) -> Iterator[AnyEvent]:
    """A Pod and its container; None: it is not known which one of the Pod it is."""
    labels = dict(pod.labels)
    yield Started(
        execution=pod.uid,
        n=0,
        at=at,
        activity=pod.uid,
        kind=POD,
        name=f"{pod.namespace}/{pod.name}",
        node=node,
        facets=write_facet(PodFacet(namespace=pod.namespace, name=pod.name, labels=labels)),
    )
    facet = ContainerFacet(name=planned.name, init=planned.init) if planned else None
    yield Started(
        execution=pod.uid,
        n=0,
        at=at,
        activity=uid,
        kind=CONTAINER,
        parent=pod.uid,
        image=(planned.image if planned else "") or None,
        facets=write_facet(facet) if facet else {},
    )


def claim_bound(namespace: str, name: str, bound: BoundClaim) -> Iterator[AnyEvent]:
    """A claim, and that its name leads to the volume that it is bound to."""
    yield Started(
        execution=bound.uid,
        n=0,
        at=bound.created,
        activity=bound.uid,
        kind=CLAIM,
        name=f"{namespace}/{name}",
        facets=write_facet(ClaimFacet(namespace=namespace, name=name, volume=bound.volume)),
    )
    yield Alias(
        execution=bound.uid,
        n=0,
        at=bound.created,
        a=claim_locator(namespace, name),
        b=volume_locator(namespace, name, bound.volume),
    )


def declare(container: Uid, at: int, kind: str, whole: Locator, how: str = "") -> Looked:
    """How completely the accesses of a container to a volume are seen."""
    return Looked(
        execution=Uid(container.partition("/")[0]),
        n=0,
        at=at,
        activity=container,
        kind=kind,
        locator=whole,
        answer=how,
    )


def report_gap(container: Uid, at: int, what: str, why: str, locator: Locator | None = None) -> Gap:
    return Gap(
        execution=Uid(container.partition("/")[0]),
        n=0,
        at=at,
        activity=container,
        what=what,
        why=why,
        locator=locator,
    )

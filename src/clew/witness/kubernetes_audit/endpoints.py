"""Which Pods a Service leads to, and until when.

An EndpointSlice lists the Pods that answer for a Service. Each answer has the whole slice, so a Pod
that it listed last and does not list any more has left. Only Pods of the Service's own namespace
count: a user who may write an EndpointSlice may name any Pod in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.documents.ids import Locator, Uid
from clew.prov.cluster.activity_uids import LEFT, POD, object_uid
from clew.prov.cluster.facets import PodFacet, write_facet
from clew.prov.cluster.locators import pod_locator, service_locator
from clew.prov.events import Alias, AnyEvent, Looked, Started
from clew.witness.kubernetes_audit.fold_state import FoldState
from clew.witness.kubernetes_audit.object_types import Endpoint, EndpointSlice, is_name

SERVICE_OF = "kubernetes.io/service-name"
"""The label with the name of the Service."""


def describe_endpoints(state: FoldState, found: EndpointSlice, *, at: int) -> Iterator[AnyEvent]:
    """The Pods that a Service leads to from now on, where they are new, and those that left."""
    about = found.metadata
    service = (about.labels or {}).get(SERVICE_OF, "")
    if not is_name(service) or not is_name(about.namespace) or object_uid(about.uid) is None:
        return
    slice_name = f"{about.namespace}/{service}/{about.uid}"
    known = state.endpoints.get(slice_name, [])
    serving: list[Uid] = []
    for endpoint in found.endpoints or ():
        uid = _find_pod(state, endpoint, about.namespace)
        if uid is None or endpoint.target_ref is None:
            continue
        serving.append(uid)
        if uid not in known:
            yield from _describe_new(uid, endpoint.target_ref.name, about.namespace, service, at)
    if serving:
        state.endpoints[slice_name] = serving
    else:
        state.endpoints.pop(slice_name, None)
    place = service_locator(about.namespace, service)
    yield from _describe_left(state, place, set(known) - set(serving), at)


def describe_removal(state: FoldState, uid: str, *, at: int) -> Iterator[AnyEvent]:
    """The Pods of an EndpointSlice that is deleted have left."""
    for slice_name in [one for one in state.endpoints if one.endswith(f"/{uid}")]:
        namespace, service, _ = slice_name.split("/")
        pods = set(state.endpoints.pop(slice_name))
        yield from _describe_left(state, service_locator(namespace, service), pods, at)


def _find_pod(state: FoldState, endpoint: Endpoint, namespace: str) -> Uid | None:
    target = endpoint.target_ref
    if target is None or target.kind != "Pod" or not is_name(target.name):
        return None
    if target.namespace != namespace or not endpoint.conditions.is_serving:
        return None
    uid = object_uid(target.uid)
    return None if uid is None else state.mirrors.get(uid, uid)


def _describe_new(uid: Uid, name: str, namespace: str, service: str, at: int) -> Iterator[AnyEvent]:
    yield Started(
        execution=uid,
        n=0,
        at=at,
        activity=uid,
        kind=POD,
        name=f"{namespace}/{name}",
        facets=write_facet(PodFacet(namespace=namespace, name=name)),
    )
    place = service_locator(namespace, service)
    yield Alias(execution=uid, n=0, at=at, a=place, b=pod_locator(uid))


def _describe_left(
    state: FoldState, service: Locator, pods: set[Uid], at: int
) -> Iterator[AnyEvent]:
    """A Pod that another slice of the Service lists was moved there."""
    own = f"{service.removeprefix('service://')}/"
    elsewhere = {
        uid for name, listed in state.endpoints.items() if name.startswith(own) for uid in listed
    }
    for uid in sorted(pods - elsewhere):
        yield Looked(execution=uid, n=0, at=at, activity=uid, kind=LEFT, locator=service)

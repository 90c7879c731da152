"""The shell: kopf watches, what it sees is kept in indices, and whoever is concerned is looked at.

Of kopf only event handlers and indices are used: handlers of changes would write annotations and
finalizers to users' resources. Handlers do nothing but name resources; workers look at them. They
are coroutines though they wait for nothing: kopf would give each call of a function a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import kopf

from clew.kube import cluster_cache
from clew.kube.client import KINDS, RESOURCES
from clew.kube.cluster_cache import Seen, concerned
from clew.kube.controller.options import Options
from clew.kube.controller.work_queue import Queue
from clew.kube.objects import Key, Object, name_of, namespace_of

CHILDREN = ("StatefulSet", "Deployment", "Service", "NetworkPolicy")
FOLLOWERS = ("Tensorboard", "PVCViewer")


def concerned_by(body: Object, seen: Seen) -> Iterator[Key]:
    """Whom a change of an object may mean something to."""
    kind, namespace, name = str(body["kind"]), namespace_of(body), name_of(body)
    if kind in RESOURCES:
        yield Key(kind, namespace, name)
    elif kind == "PersistentVolumeClaim":
        yield from seen.following(namespace, name)
    elif kind == "Pod":
        for index in cluster_cache.pods(body):
            if index[1] == "claim":
                yield from seen.following(namespace, index[2])
            else:
                yield from concerned(*index)
    elif kind == "Event":
        for _, about, whose in cluster_cache.events(body):
            made = seen.makers(namespace, whose) if about == "Pod" else [(about, whose)]
            for workload in made:
                yield from concerned(namespace, *workload)
    else:
        yield from concerned(namespace, kind, name)


INDICES = ("own", "followers", "children", "claims", "pods", "events")


def registry(options: Options, queue: Queue, seen: Seen) -> kopf.OperatorRegistry:
    """What is watched, and what is kept of it."""
    made = kopf.OperatorRegistry()
    functions = {
        "own": (RESOURCES, cluster_cache.own),
        "followers": (FOLLOWERS, cluster_cache.followers),
        "children": (children(options), cluster_cache.children),
        "claims": (("PersistentVolumeClaim",), cluster_cache.claims),
        "pods": (("Pod",), cluster_cache.pods),
        "events": (("Event",), cluster_cache.events),
    }
    for name, (kinds, function) in functions.items():
        for kind in kinds:
            _index(made, name, kind, function, options)
    watched = (*RESOURCES, *children(options), "PersistentVolumeClaim", "Pod", "Event")
    for kind in watched:
        _watch(made, kind, queue, seen, options)

    @kopf.on.login(registry=made)
    def login(**given: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**given) or kopf.login_with_kubeconfig(**given)

    return made


def children(options: Options) -> tuple[str, ...]:
    return (*CHILDREN, "VirtualService") if options.istio else CHILDREN


class Forgetful(kopf.DiffBaseStorage):
    """Nobody asks kopf here what changed since the last time, for which it copies each object."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass


def _index(
    made: kopf.OperatorRegistry, name: str, kind: str, function: Any, options: Options
) -> None:
    @kopf.index(*KINDS[kind], id=name, registry=made)
    async def keep(body: kopf.Body, **_: Any) -> dict[Any, Any]:
        if not options.heeds(namespace_of(body)):
            return {}
        found: dict[Any, Any] = function(_typed(body, kind))
        return found


def _watch(
    made: kopf.OperatorRegistry, kind: str, queue: Queue, seen: Seen, options: Options
) -> None:
    @kopf.on.event(*KINDS[kind], id=f"see-{kind}", registry=made)
    async def see(body: kopf.Body, **_: Any) -> None:
        if not options.heeds(namespace_of(body)):
            return
        for key in concerned_by(_typed(body, kind), seen):
            (queue.add if kind in RESOURCES else queue.follow)(key)


def _typed(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Objects of a list do not say what they are."""
    group, version, _ = KINDS[kind]
    api = f"{group}/{version}" if group else version
    return {**body, "apiVersion": api, "kind": kind}

"""The watches: kopf keeps objects in indices, and puts the affected resources into the queue.

Only kopf's event handlers and indices are used: its change handlers would write annotations and
finalizers to users' resources. Handlers only enqueue; workers reconcile. Handlers are coroutines
because kopf runs plain functions in threads.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import kopf

from clew.kube import cluster_cache
from clew.kube.client import RESOURCES, SERVERS, TRAINING_JOBS, kinds_for
from clew.kube.cluster_cache import ClusterCache, list_possible_parents
from clew.kube.controller.options import Options
from clew.kube.controller.work_queue import WorkQueue
from clew.kube.objects import Key, Object, controller_of, name_of, namespace_of

CHILD_KINDS = ("StatefulSet", "Deployment", "Service", "NetworkPolicy")
JOB_CHILD_KINDS = ("Service", "HorizontalPodAutoscaler")
FOLLOWER_KINDS = ("Tensorboard", "PVCViewer")


def find_affected_resources(body: Object, cache: ClusterCache) -> Iterator[Key]:
    """The resources that a change of this object may affect."""
    kind, namespace, name = str(body["kind"]), namespace_of(body), name_of(body)
    if kind in RESOURCES:
        yield Key(kind, namespace, name)
    elif kind == "PersistentVolumeClaim":
        yield from cache.followers_of(namespace, name)
    elif kind == "Pod":
        for index in cluster_cache.index_pods(body):
            if index[1] == "claim":
                yield from cache.followers_of(namespace, index[2])
            else:
                yield from list_possible_parents(*index)
    elif kind == "Event":
        for _, about, name in cluster_cache.index_events(body):
            workloads = (
                cache.workloads_of_pod(namespace, name) if about == "Pod" else [(about, name)]
            )
            for workload in workloads:
                yield from list_possible_parents(namespace, *workload)
    else:
        yield from list_possible_parents(namespace, kind, name)
        owner = controller_of(body)
        if owner.get("kind") in TRAINING_JOBS:
            yield Key(str(owner["kind"]), namespace, str(owner.get("name")))


INDICES = ("resources", "followers", "children", "job_children", "claims", "pods", "events")


def make_registry(options: Options, queue: WorkQueue, cache: ClusterCache) -> kopf.OperatorRegistry:
    """The watches and indices."""
    made = kopf.OperatorRegistry()
    functions = {
        "resources": (resource_kinds(options), cluster_cache.index_resources),
        "followers": (FOLLOWER_KINDS, cluster_cache.index_followers),
        "children": (child_kinds(options), cluster_cache.index_children),
        "job_children": (job_child_kinds(options), cluster_cache.index_job_children),
        "claims": (("PersistentVolumeClaim",), cluster_cache.index_claims),
        "pods": (("Pod",), cluster_cache.index_pods),
        "events": (("Event",), cluster_cache.index_events),
    }
    for name, (kinds, function) in functions.items():
        for kind in kinds:
            _index(made, name, kind, function, options)
    for kind in watched_kinds(options):
        _watch(made, kind, queue, cache, options)

    @kopf.on.login(registry=made)
    def login(**given: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**given) or kopf.login_with_kubeconfig(**given)

    return made


def resource_kinds(options: Options) -> tuple[str, ...]:
    return RESOURCES if options.training_jobs else SERVERS


def child_kinds(options: Options) -> tuple[str, ...]:
    return (*CHILD_KINDS, "VirtualService") if options.istio else CHILD_KINDS


def job_child_kinds(options: Options) -> tuple[str, ...]:
    if not options.training_jobs:
        return ()
    return (*JOB_CHILD_KINDS, "PodGroup") if options.gang_scheduler else JOB_CHILD_KINDS


def watched_kinds(options: Options) -> tuple[str, ...]:
    children = dict.fromkeys((*child_kinds(options), *job_child_kinds(options)))
    return (*resource_kinds(options), *children, "PersistentVolumeClaim", "Pod", "Event")


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last state: no change handler needs it, and kopf would copy each object."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass


def _index(
    made: kopf.OperatorRegistry, name: str, kind: str, function: Any, options: Options
) -> None:
    @kopf.index(*kinds_for(options)[kind], id=name, registry=made)
    async def keep(body: kopf.Body, **_: Any) -> dict[Any, Any]:
        if not options.watches(namespace_of(body)):
            return {}
        found: dict[Any, Any] = function(_with_kind(body, kind, options))
        return found


def _watch(
    made: kopf.OperatorRegistry, kind: str, queue: WorkQueue, cache: ClusterCache, options: Options
) -> None:
    @kopf.on.event(*kinds_for(options)[kind], id=f"see-{kind}", registry=made)
    async def see(body: kopf.Body, **_: Any) -> None:
        if not options.watches(namespace_of(body)):
            return
        for key in find_affected_resources(_with_kind(body, kind, options), cache):
            (queue.add if kind in RESOURCES else queue.follow)(key)


def _with_kind(body: Mapping[str, Any], kind: str, options: Options) -> dict[str, Any]:
    """Objects of a list response lack apiVersion and kind."""
    group, version, _ = kinds_for(options)[kind]
    api = f"{group}/{version}" if group else version
    return {**body, "apiVersion": api, "kind": kind}

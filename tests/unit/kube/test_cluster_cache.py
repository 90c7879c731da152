"""What is kept of what is seen, and whom it concerns."""

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.unit.kube.sample_resources import NOW, notebook, pod, tensorboard, viewer
from tests.unit.kube.training.sample_jobs import pod as job_pod
from tests.unit.kube.training.sample_jobs import tfjob

from clew.kube import cluster_cache
from clew.kube.cluster_cache import ClusterCache
from clew.kube.controller.options import Options
from clew.kube.controller.watches import INDICES, find_affected_resources
from clew.kube.objects import Json, Key
from clew.kube.resources import tensorboards, viewers
from clew.kube.training.job_spec import ReplicaId, parse_job
from clew.kube.training.manifests import make_service


def cache_of(**objects: Iterable[Json]) -> ClusterCache:
    """As kopf would fill its indices."""
    indices: dict[str, dict[Any, list[Any]]] = {name: {} for name in INDICES}
    for name, found in objects.items():
        for each in found:
            for key, value in getattr(cluster_cache, f"index_{name}")(each).items():
                indices[name].setdefault(key, []).append(value)
    return ClusterCache(indices)


def owned(made: Json, kind: str, name: str, uid: str = "u") -> Json:
    owner = {"kind": kind, "name": name, "uid": uid, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return {"kind": "Pod", **made}


def workload(kind: str, name: str, of: Json) -> Json:
    made = {"kind": kind, "metadata": {"name": name, "namespace": "me", "uid": f"{kind}-{name}"}}
    return owned(made, of["kind"], of["metadata"]["name"], of["metadata"]["uid"])


def event(kind: str, name: str, **more: Any) -> Json:
    about = {"kind": kind, "name": name, "uid": "u"}
    metadata = {"name": "e", "namespace": "me", "uid": "uid-e"}
    return {
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": about,
        "lastTimestamp": "2026-03-01T11:00:00Z",
        **more,
    }


READY = {"type": "Ready", "status": "True"}
NB, TB = Key("Notebook", "me", "first"), Key("Tensorboard", "me", "first")


def test_a_service_concerns_everybody_of_that_name() -> None:
    service = {"kind": "Service", "metadata": {"name": "pvcviewer-x", "namespace": "me"}}
    assert set(find_affected_resources(service, cache_of())) == {
        Key("Notebook", "me", "pvcviewer-x"),
        Key("Tensorboard", "me", "pvcviewer-x"),
        Key("PVCViewer", "me", "x"),
    }


def test_a_pod_concerns_its_resource_and_who_follows_its_volume() -> None:
    around = cache_of(followers=[tensorboard("pvc://data/x"), viewer("other")])
    made = owned(pod("first-0", claim="data"), "StatefulSet", "first")
    assert set(find_affected_resources(made, around)) == {NB, Key("Tensorboard", "me", "curves")}
    made = owned(pod("first-5f6d8c9b7-abcde"), "ReplicaSet", "first-5f6d8c9b7")
    assert set(find_affected_resources(made, around)) == {TB}


def test_of_other_pods_nothing_is_kept() -> None:
    assert cluster_cache.index_pods(owned(pod("job-x"), "Job", "job")) == {}


def test_an_event_concerns_the_owner_of_its_object() -> None:
    around = cache_of(
        pods=[
            owned(pod("first-0"), "StatefulSet", "first"),
            owned(pod("any"), "ReplicaSet", "first-5f6d8c9b7"),
        ]
    )
    assert set(find_affected_resources(event("StatefulSet", "first"), around)) == {NB}
    assert set(find_affected_resources(event("Pod", "first-0"), around)) == {NB}
    assert set(find_affected_resources(event("Pod", "any"), around)) == {TB}
    assert set(find_affected_resources(event("Pod", "other"), around)) == set()
    assert set(find_affected_resources(event("ReplicaSet", "first-5f6d8c9b7"), around)) == {TB}
    assert set(find_affected_resources(event("Notebook", "first"), around)) == set()


def test_a_pod_s_events_are_found_also_when_its_name_was_cut() -> None:
    """Kubernetes leaves 58 of what a Pod's name is made from."""
    board = tensorboard("pvc://data", "x" * 50)
    made_by = f"{'x' * 50}-5f6d8c9b7b"
    made = owned(pod(f"{made_by}-"[:58] + "abcde"), "ReplicaSet", made_by)
    said = event("Pod", made["metadata"]["name"], reason="FailedMount")
    around = cache_of(
        pods=[made], events=[said], children=[workload("Deployment", "x" * 50, of=board)]
    )
    assert set(find_affected_resources(said, around)) == {Key("Tensorboard", "me", "x" * 50)}
    assert [e.reason for e in around.state_for(board, NOW).events] == ["FailedMount"]


def test_nothing_of_another_s_workload_is_seen_as_one_s_own() -> None:
    """The Deployment of a viewer may have the name of a Tensorboard."""
    files, board = viewer("data", "x"), tensorboard("pvc://data", "pvcviewer-x")
    theirs = workload("Deployment", "pvcviewer-x", of=files)
    theirs["status"] = {"readyReplicas": 1, "conditions": [{"type": "Available"}]}
    running = owned(pod("any", conditions=[READY]), "ReplicaSet", "pvcviewer-x-5f6d8c9b7")
    later = {"lastTimestamp": "2026-03-01T11:45:00Z"}
    said = [event("Pod", "any", **later), event("ReplicaSet", "pvcviewer-x-5f6d8c9b7", **later)]
    around = cache_of(pods=[running], events=said, children=[theirs])
    state = around.state_for(board, NOW)
    assert (state.pods, state.events, around.pods_of(board)) == ([], [], [])
    status = tensorboards.decide(board, state, Options()).status
    assert status["readyReplicas"] == 0
    assert [c["reason"] for c in status["conditions"]] == ["NameInUse"]
    own = around.state_for(files, NOW)
    assert len(own.pods) == len(around.pods_of(files)) == 1
    assert len(own.events) == 2
    assert viewers.decide(files, own, Options()).status["ready"] is True


def test_the_cluster_state_of_a_notebook() -> None:
    made = owned(pod("first-0"), "StatefulSet", "first")
    foreign = owned(pod("second-0"), "StatefulSet", "second")
    old = event("Pod", "first-0", lastTimestamp="2026-01-01T00:00:00Z")
    new = event("Pod", "first-0", series={"count": 3}, type="Warning", reason="FailedMount")
    service = {"kind": "Service", "metadata": {"name": "first", "namespace": "me", "uid": "s"}}
    around = cache_of(
        pods=[made, foreign],
        events=[old, new, event("Pod", "second-0"), event("StatefulSet", "second")],
        children=[service, workload("StatefulSet", "first", of=notebook())],
    )
    found = around.state_for(notebook(creationTimestamp="2026-02-01T00:00:00Z"), NOW)
    assert [p["metadata"]["name"] for p in found.pods] == ["first-0"]
    assert [(e.reason, e.count, e.warning) for e in found.events] == [("FailedMount", 3, True)]
    assert found.children[("Service", "first")].owner == ""


def test_what_vanished_is_gone() -> None:
    made = owned(pod("first-0", claim="data"), "StatefulSet", "first")
    service = {"kind": "Service", "metadata": {"name": "first", "namespace": "me", "uid": "s"}}
    workloads = workload("StatefulSet", "first", of=notebook())
    around = cache_of(resources=[notebook()], pods=[made], children=[service, workloads])
    assert around.resource(NB)
    assert around.state_for(notebook(), NOW).pods
    around.gone |= {"pod-first-0", "s", "uid-first", "StatefulSet-first"}
    state = around.state_for(notebook(), NOW)
    assert (state.pods, state.children, around.resource(NB)) == ([], {}, None)


def test_a_sweep_finds_what_vanished_unseen() -> None:
    made = owned(pod("first-0", claim="data"), "StatefulSet", "first")
    service = {"kind": "Service", "metadata": {"name": "first", "namespace": "me", "uid": "s"}}
    around = cache_of(resources=[notebook()], pods=[made], children=[service])
    there = {"Pod": {"pod-first-0"}, "Service": {"s"}, "Notebook": set()}

    async def list_uids(kind: str) -> set[str]:
        return set(there[kind])

    async def go() -> None:
        assert not await around.sweep("Pod", list_uids)
        assert not await around.sweep("Service", list_uids)
        assert await around.sweep("Notebook", list_uids)
        assert not await around.sweep("Notebook", list_uids), "it is no news any more"
        there["Pod"].clear()
        assert await around.sweep("Pod", list_uids)

    asyncio.run(go())
    assert around.gone == {"uid-first", "pod-first-0"}


def test_somebody_s_edit_of_a_spec_is_seen() -> None:
    def child(*fields: Json) -> bool:
        metadata = {"name": "s", "namespace": "me", "uid": "s", "managedFields": list(fields)}
        made = {"kind": "StatefulSet", "metadata": metadata}
        [found] = cluster_cache.index_children(made).values()
        return bool(found.edited)

    spec = {"f:spec": {"f:replicas": {}}}
    ours = {"manager": "clew-operator", "fieldsV1": spec}
    status = {"manager": "k", "subresource": "status", "fieldsV1": {"f:status": {}}}
    assert not child(ours, status, {"manager": "k", "fieldsV1": {"f:metadata": {}}})
    assert child(ours, {"manager": "kubectl-edit", "fieldsV1": spec})
    assert child(ours, {"manager": "kubectl", "subresource": "scale", "fieldsV1": spec})


def test_a_training_job_s_state_has_only_what_it_owns() -> None:
    of = tfjob(Worker=2)
    own, other = job_pod(of, "Worker", 0), job_pod(of, "Worker", 1)
    other["metadata"]["ownerReferences"][0]["uid"] = "an earlier job of that name"
    service = make_service(parse_job(of), ReplicaId("Worker", 0))
    service["metadata"]["uid"] = "s"
    unowned = {**service, "metadata": {"name": "x", "namespace": "me", "uid": "t"}}
    pods = [{"kind": "Pod", **each} for each in (own, other)]
    about = event("Pod", "mnist-worker-0")
    cache = cache_of(resources=[of], pods=pods, job_children=[service, unowned], events=[about])
    state = cache.job_state(of, NOW)
    assert [pod["metadata"]["name"] for pod in state.pods] == ["mnist-worker-0"]
    assert list(state.children) == [("Service", "mnist-worker-0")]
    assert [each.about_name for each in state.events] == ["mnist-worker-0"]
    key = Key("TFJob", "me", "mnist")
    assert set(find_affected_resources(pods[0], cache)) == {key}
    assert key in find_affected_resources({"kind": "Service", **service}, cache)
    assert set(find_affected_resources(about, cache)) == {key}

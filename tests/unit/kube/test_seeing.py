"""What is kept of what is seen, and whom it concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.unit.kube.resources import NOW, notebook, pod, tensorboard, viewer

from clew.kube import seeing
from clew.kube.objects import Json, Key
from clew.kube.seeing import Seen
from clew.kube.watching import INDICES, concerned_by


def seen(**objects: Iterable[Json]) -> Seen:
    """As kopf would fill its indices."""
    indices: dict[str, dict[Any, list[Any]]] = {name: {} for name in INDICES}
    for name, found in objects.items():
        for each in found:
            for key, value in getattr(seeing, name)(each).items():
                indices[name].setdefault(key, []).append(value)
    return Seen(indices)


def owned(made: Json, kind: str, name: str) -> Json:
    made["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "controller": True}]
    return {**made, "kind": "Pod"}


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


NB, TB = Key("Notebook", "me", "first"), Key("Tensorboard", "me", "first")


def test_a_service_concerns_everybody_of_that_name() -> None:
    service = {"kind": "Service", "metadata": {"name": "pvcviewer-x", "namespace": "me"}}
    assert set(concerned_by(service, seen())) == {
        Key("Notebook", "me", "pvcviewer-x"),
        Key("Tensorboard", "me", "pvcviewer-x"),
        Key("PVCViewer", "me", "x"),
    }


def test_a_pod_concerns_its_resource_and_who_follows_its_volume() -> None:
    around = seen(followers=[tensorboard("pvc://data/x"), viewer("other")])
    made = owned(pod("first-0", claim="data"), "StatefulSet", "first")
    assert set(concerned_by(made, around)) == {NB, Key("Tensorboard", "me", "curves")}
    made = owned(pod("first-5f6d8c9b7-abcde"), "ReplicaSet", "first-5f6d8c9b7")
    assert set(concerned_by(made, around)) == {TB}


def test_of_other_pods_nothing_is_kept() -> None:
    assert seeing.pods(owned(pod("job-x"), "Job", "job")) == {}


def test_an_event_concerns_whom_its_object_belonged_to() -> None:
    assert set(concerned_by(event("StatefulSet", "first"), seen())) == {NB}
    assert NB in set(concerned_by(event("Pod", "first-0"), seen()))
    assert set(concerned_by(event("Pod", "first-5f6d8c9b7-abcde"), seen())) == {TB}
    assert set(concerned_by(event("ReplicaSet", "first-5f6d8c9b7"), seen())) == {TB}
    assert set(concerned_by(event("Notebook", "first"), seen())) == set()


def test_the_world_of_a_notebook() -> None:
    made = owned(pod("first-0"), "StatefulSet", "first")
    foreign = owned(pod("second-0"), "StatefulSet", "second")
    old = event("Pod", "first-0", lastTimestamp="2026-01-01T00:00:00Z")
    new = event("Pod", "first-0", series={"count": 3}, type="Warning", reason="FailedMount")
    service = {"kind": "Service", "metadata": {"name": "first", "namespace": "me", "uid": "s"}}
    around = seen(pods=[made, foreign], events=[old, new], children=[service])
    found = around.world(notebook(creationTimestamp="2026-02-01T00:00:00Z"), NOW)
    assert [p["metadata"]["name"] for p in found.pods] == ["first-0"]
    assert [(e.reason, e.count, e.warning) for e in found.events] == [("FailedMount", 3, True)]
    assert found.children[("Service", "first")].owner == ""


def test_what_vanished_is_gone() -> None:
    made = owned(pod("first-0", claim="data"), "StatefulSet", "first")
    service = {"kind": "Service", "metadata": {"name": "first", "namespace": "me", "uid": "s"}}
    around = seen(own=[notebook()], pods=[made], children=[service])
    assert around.resource(NB)
    around.gone |= {"pod-first-0", "s", "uid-first"}
    world = around.world(notebook(), NOW)
    assert (world.pods, world.children, around.resource(NB)) == ([], {}, None)


def test_a_sweep_finds_what_vanished_unseen() -> None:
    made = owned(pod("first-0", claim="data"), "StatefulSet", "first")
    service = {"kind": "Service", "metadata": {"name": "first", "namespace": "me", "uid": "s"}}
    around = seen(own=[notebook()], pods=[made], children=[service])
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
        [found] = seeing.children(made).values()
        return bool(found.edited)

    spec = {"f:spec": {"f:replicas": {}}}
    ours = {"manager": "clew-operator", "fieldsV1": spec}
    status = {"manager": "k", "subresource": "status", "fieldsV1": {"f:status": {}}}
    assert not child(ours, status, {"manager": "k", "fieldsV1": {"f:metadata": {}}})
    assert child(ours, {"manager": "kubectl-edit", "fieldsV1": spec})
    assert child(ours, {"manager": "kubectl", "subresource": "scale", "fieldsV1": spec})

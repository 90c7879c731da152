"""Claims with their storage, controllers, Services; and any order gives the same graph."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.witness.kubernetes_audit.audit_log import (
    CONTROLLER,
    NODE,
    POD,
    POD_UID,
    audit,
    ended,
    fold,
    of,
    pod,
    running,
    time,
)

from clew.prov.cluster.activity_uids import object_uid
from clew.prov.cluster.facets import Backing, ClaimFacet, ControllerFacet, PodFacet, read_facet
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.events import Alias, Ended, Looked, Started
from clew.witness.kubernetes_audit.fold_state import FoldState

CLAIM_UID = "0a1b2c3d-0000-4000-8000-000000000002"
CLAIM = CLAIM_UID.replace("-", "")
JOB_UID = "0a1b2c3d-0000-4000-8000-000000000003"


def about(name: str, uid: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "team", "uid": uid, "creationTimestamp": time(0), **more}


def claim(volume: str = "", **more: Any) -> dict[str, Any]:
    spec = {"storageClassName": "fast", **({"volumeName": volume} if volume else {})}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": about("data", CLAIM_UID, **more),
        "spec": spec,
    }


def volume() -> dict[str, Any]:
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-1", "uid": "x", "creationTimestamp": time(2)},
        "spec": {
            "claimRef": {"namespace": "team", "name": "data", "uid": CLAIM_UID},
            "storageClassName": "fast",
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
        },
    }


def binding() -> list[dict[str, Any]]:
    return [
        audit("create", "persistentvolumeclaims", claim(), user="ann"),
        audit("create", "persistentvolumes", volume(), user=CONTROLLER),
        audit("update", "persistentvolumeclaims", claim("pv-1"), user=CONTROLLER),
    ]


def best(found: Any, uid: str) -> Started:
    """The `started` that the graph keeps."""
    numbered = [one for one in number_events(found.events) if isinstance(one, Started)]
    return min((one for one in numbered if one.activity == uid), key=lambda one: one.n)


def test_claim_leads_to_its_storage() -> None:
    found = fold(*binding())
    begun = best(found, CLAIM)

    assert begun.agent == "ann"
    assert read_facet(begun.facets, ClaimFacet) == ClaimFacet(
        namespace="team",
        name="data",
        volume="pv-1",
        storage_class="fast",
        backing=Backing(driver="ebs.csi.aws.com", handle="vol-1"),
    )
    assert {(one.a, one.b) for one in of(found, Alias)} == {
        ("pvc://team/data", "pvc://team/data@pv-1")
    }


def test_any_order_of_claim_and_volume_gives_the_same() -> None:
    kept = {
        (
            best(fold(*order), CLAIM).facets["kubernetes"]["backing"]["handle"],
            best(fold(*order), CLAIM).agent,
        )
        for order in itertools.permutations(binding())
    }

    assert kept == {("vol-1", "ann")}


def test_claim_ends_when_its_last_finalizer_is_gone() -> None:
    deleted = {"deletionTimestamp": time(5), "deletionGracePeriodSeconds": 0}
    waiting = claim("pv-1", **deleted, finalizers=["kubernetes.io/pvc-protection"])
    state = FoldState()
    first = fold(audit("delete", "persistentvolumeclaims", waiting), state=state)
    last = fold(audit("update", "persistentvolumeclaims", claim("pv-1", **deleted)), state=state)

    assert of(first, Ended) == []
    assert [one.activity for one in of(last, Ended)] == [CLAIM]
    assert state.claims == {}


def test_controller_has_its_owner_and_its_end() -> None:
    owner = {"kind": "CronJob", "name": "nightly", "uid": "c", "apiVersion": "batch/v1"}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": about("train", JOB_UID)}
    job["metadata"]["ownerReferences"] = [owner]
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": time(8)}
    done = {**job, "status": {"conditions": [complete]}}
    found = fold(
        audit("create", "batch/jobs", job, user=CONTROLLER),
        audit("update", "batch/jobs/status", done, user=CONTROLLER),
    )
    (begun,) = of(found, Started)
    facet = read_facet(begun.facets, ControllerFacet)

    assert facet is not None
    assert (facet.kind, facet.api_version, facet.owner and facet.owner.name) == (
        "Job",
        "batch/v1",
        "nightly",
    )
    assert [one.status for one in of(found, Ended)] == [0]


@pytest.mark.parametrize(("condition", "status"), [("Succeeded", 0), ("Failed", 1)])
def test_training_job_owns_its_pods_and_has_its_end(condition: str, status: int) -> None:
    head = {"kind": "TFJob", "apiVersion": "kubeflow.org/v1", "metadata": about("mnist", JOB_UID)}
    owner = {"kind": "TFJob", "name": "mnist", "uid": JOB_UID, "controller": True}
    worker = pod(metadata={"ownerReferences": [owner]})
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": time(7)}
    conditions = [ready, {"type": condition, "status": "True", "lastTransitionTime": time(8)}]
    done = {**head, "status": {"conditions": conditions}}
    found = fold(
        audit("create", "kubeflow.org/tfjobs", head),
        audit("create", "pods", worker, user=CONTROLLER),
        audit("patch", "kubeflow.org/tfjobs/status", done, user=CONTROLLER),
    )
    job, own = of(found, Started)[:2]
    facet = read_facet(own.facets, PodFacet)
    assert facet is not None and facet.owner is not None
    assert (facet.owner.kind, facet.owner.name) == ("TFJob", "mnist")
    assert object_uid(facet.owner.uid) == job.activity, "the Pod leads to the job"
    assert [(one.activity, one.status) for one in of(found, Ended)] == [(job.activity, status)]


def test_custom_resource_is_a_controller() -> None:
    notebook = {"kind": "Notebook", "apiVersion": "kubeflow.org/v1"}
    found = fold(
        audit("create", "kubeflow.org/notebooks", notebook | {"metadata": about("nb", JOB_UID)})
    )

    assert of(found, Started)[0].name == "team/nb"


def endpoints(*uids: str, namespace: str = "team", ready: bool = True) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "web"}
    target = {"kind": "Pod", "namespace": namespace, "name": "train"}
    return {
        "kind": "EndpointSlice",
        "metadata": about("web-1", JOB_UID, labels=labels),
        "endpoints": [
            {"targetRef": {**target, "uid": uid}, "conditions": {"ready": ready}} for uid in uids
        ],
    }


def test_service_leads_to_the_pods_that_became_ready() -> None:
    kind, state = "discovery.k8s.io/endpointslices", FoldState()
    found = fold(
        audit("create", kind, endpoints()),
        audit("update", kind, endpoints(POD_UID, ready=False), at=2.0),
        audit("update", kind, endpoints(POD_UID), at=3.0),
        audit("update", kind, endpoints(POD_UID), at=4.0),
        state=state,
    )
    aliases = of(found, Alias)

    assert [(one.a, one.b) for one in aliases] == [("service://team/web", f"pod://{POD}")]
    assert state.endpoints == {f"team/web/{JOB_UID}": [POD]}
    (begun,) = of(found, Started)
    assert read_facet(begun.facets, PodFacet) == PodFacet(namespace="team", name="train")


@pytest.mark.parametrize(
    "change",
    [
        audit("update", "discovery.k8s.io/endpointslices", endpoints(POD_UID, ready=False), at=2.0),
        audit("update", "discovery.k8s.io/endpointslices", endpoints(), at=2.0),
        audit(
            "delete", "discovery.k8s.io/endpointslices",
            {"kind": "Status", "metadata": {}, "details": {"uid": JOB_UID}}, at=2.0,
        ),
        audit("delete", "discovery.k8s.io/endpointslices", endpoints(POD_UID), at=2.0),
    ],
)  # fmt: skip
def test_a_pod_leaves_a_service(change: dict[str, Any]) -> None:
    kind, state = "discovery.k8s.io/endpointslices", FoldState()
    found = fold(audit("create", kind, endpoints(POD_UID)), change, state=state)
    (left,) = of(found, Looked)
    assert (left.activity, left.kind, left.locator) == (POD, "left", "service://team/web")
    assert state.endpoints == {}


def test_a_pod_that_moves_to_another_slice_does_not_leave() -> None:
    kind, state = "discovery.k8s.io/endpointslices", FoldState()
    first, second = endpoints(POD_UID), endpoints(POD_UID)
    second["metadata"] = {**second["metadata"], "uid": POD_UID}
    without = {**first, "endpoints": []}
    found = fold(
        audit("create", kind, first),
        audit("create", kind, second, at=2.0),
        audit("update", kind, without, at=3.0),
        state=state,
    )
    assert of(found, Looked) == []


def test_service_cannot_lead_to_a_pod_of_another_namespace() -> None:
    event = audit("create", "discovery.k8s.io/endpointslices", endpoints(POD_UID, namespace="x"))

    assert fold(event).events == []


def test_address_of_a_service() -> None:
    service = {"kind": "Service", "metadata": about("web", JOB_UID)}
    found = fold(audit("create", "services", service | {"spec": {"clusterIPs": ["10.96.0.9"]}}))

    assert [(one.a, one.b) for one in of(found, Alias)] == [
        ("ip://10.96.0.9", "service://team/web")
    ]


LIFE = [
    audit("create", "pods", pod(), user=CONTROLLER),
    audit("patch", "pods/status", pod(nodeName="node1", status=running()), user=NODE, at=5.5),
    audit("patch", "pods/status", pod(nodeName="node1", status=ended()), user=NODE, at=9.5),
    audit("delete", "pods", pod(nodeName="node1", status=ended()), user=NODE, at=9.9),
    *binding(),
    audit("get", "pods/exec", name="train", code=101, at=6.0),
]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(LIFE), max_size=12))
def test_repeated_events_add_nothing(again: list[dict[str, Any]]) -> None:
    state = FoldState()
    once = {(one.execution, one.n) for one in number_events(fold(*LIFE, state=state).events)}
    more = {(one.execution, one.n) for one in number_events(fold(*again, state=state).events)}
    kept = {best(fold(*LIFE), uid).n for uid in (POD, CLAIM)}

    assert kept <= {n for _, n in once}
    extra = [n for execution, n in more - once if execution == POD]
    assert all(n > best(fold(*LIFE), POD).n for n in extra), "nothing more complete"

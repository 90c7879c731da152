"""What is said of a Pod that is not ready, and of one that never came."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.kube.sample_resources import event, pod

from clew.kube.controller import status_reasons
from clew.kube.controller.model import Event
from clew.kube.controller.status_reasons import (
    MAX_LENGTH,
    RUNNING,
    Reason,
    reason_of_refusal,
    reason_of_workload,
)
from clew.kube.objects import Json


def of_pod(found: Json, events: Iterable[Event], *, stopped: bool = False) -> Reason:
    return status_reasons.reason_of_pod(found, events, stopped=stopped)


def unschedulable(message: str) -> Json:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    return pod("p", None, phase="Pending", conditions=[condition])


def container(**state: Any) -> Json:
    last = state.pop("last", {})
    status = {"name": "c", "image": "i:1", "state": state, "lastState": last, "ready": False}
    return pod(
        "p",
        phase="Pending",
        conditions=[{"type": "Ready", "status": "False"}],
        containerStatuses=[status],
    )


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (unschedulable('0/2 nodes: persistentvolumeclaim "data" not found'), "VolumeMissing"),
        (
            unschedulable("0/2 nodes: pod has unbound immediate PersistentVolumeClaims"),
            "VolumeNotReady",
        ),
        (unschedulable("1 node(s) had volume node affinity conflict"), "VolumeElsewhere"),
        (
            unschedulable("1 node(s) didn't match PersistentVolume's node affinity"),
            "VolumeElsewhere",
        ),
        (unschedulable("2 Insufficient nvidia.com/gpu"), "NoRoom"),
        (unschedulable("2 node(s) had untolerated taint"), "NoNodeFits"),
        (container(waiting={"reason": "ImagePullBackOff"}), "ImageNotPulled"),
        (container(waiting={"reason": "ErrImageNeverPull"}), "ImageNotPulled"),
        (container(waiting={"reason": "CreateContainerConfigError"}), "ConfigMissing"),
        (container(waiting={"reason": "ContainerCreating"}), "Starting"),
        (
            container(waiting={"reason": "CrashLoopBackOff"}, last={"terminated": {"exitCode": 3}}),
            "Crashing",
        ),
        (container(terminated={"exitCode": 137, "reason": "OOMKilled"}), "OutOfMemory"),
        (container(running={}), "Starting"),
        (container(running={"startedAt": "x"}), "NotReady"),
        (container(terminated={"exitCode": 0}), "Starting"),
    ],
)
def test_reasons(found: Json, reason: str) -> None:
    assert of_pod(found, ()).name == reason


def test_a_ready_pod_has_no_trouble() -> None:
    found = pod("p", conditions=[{"type": "Ready", "status": "True"}])
    assert of_pod(found, [event("FailedMount", "long ago", "Pod", "pod-p")]) is RUNNING


def test_a_volume_in_use_elsewhere_is_seen_in_events() -> None:
    waiting = container(waiting={"reason": "ContainerCreating"})
    said = [
        event("FailedAttachVolume", "Multi-Attach error for volume pvc-1", "Pod", "pod-p"),
        event("FailedMount", "Unable to attach or mount volumes", "Pod", "pod-p"),
    ]
    assert of_pod(waiting, said).name == "VolumeInUse"
    assert of_pod(waiting, [event("FailedMount", "no such share", "Pod", "pod-p")]).name == (
        "VolumeNotMounted"
    )
    assert of_pod(waiting, [event("FailedMount", "x", "Pod", "another")]).name == "Starting"
    attached = event("SuccessfulAttachVolume", "now", "Pod", "pod-p")
    assert of_pod(waiting, [*said, attached]).name == "Starting"


def test_a_node_that_is_silent() -> None:
    found = container(running={"startedAt": "x"})
    found["status"]["containerStatuses"][0]["ready"] = True
    assert of_pod(found, ()).name == "NodeUnreachable"
    found["metadata"]["deletionTimestamp"] = "x"
    for stopped in (True, False):
        why = of_pod(found, (), stopped=stopped)
        assert why.name == "NodeUnreachable", "nobody there ends it"
        assert "node a " in why.text


def leaving(found: Json, **disruption: str) -> Json:
    found["metadata"]["deletionTimestamp"] = "x"
    found["status"].setdefault("conditions", []).extend(
        [{"type": "DisruptionTarget", "status": "True", **disruption}] if disruption else []
    )
    return found


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    "found",
    [
        pod("p"),
        pod("p", conditions=READY),
        container(running={"startedAt": "x"}),
        container(terminated={"exitCode": 0}),
        container(terminated={"exitCode": 143}),
    ],
)
def test_a_pod_that_leaves_is_stopped_or_replaced(found: Json) -> None:
    assert of_pod(leaving(found), (), stopped=True).name == "Stopping"
    why = of_pod(found, ())
    assert why.name == "Starting"
    assert "is being replaced" in why.text


def test_a_pod_that_was_driven_from_its_node() -> None:
    """By a node that is lost it was told to go, and never hears of it; by one that is there it is
    gone in a moment."""
    lost = leaving(container(waiting={"reason": "x"}), reason="DeletionByTaintManager")
    assert of_pod(lost, ()).name == "NodeUnreachable"
    there = leaving(pod("p", conditions=list(READY)), reason="DeletionByTaintManager")
    assert of_pod(there, ()).name == "Starting"
    other = leaving(container(waiting={"reason": "x"}), reason="PreemptionByScheduler")
    assert of_pod(other, ()).name == "Starting"


NO_RIGHT = (
    'statefulsets.apps is forbidden: User "system:serviceaccount:clew:clew-operator" '
    'cannot create resource "statefulsets" in API group "apps" in the namespace "me"'
)


def test_a_right_that_the_operator_lacks_is_named() -> None:
    why = reason_of_refusal(NO_RIGHT, invalid=False)
    assert why.name == "NotAllowed"
    assert why.text.startswith("The operator lacks the right")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("is forbidden: exceeded quota: small, requested: cpu=1", "QuotaExceeded"),
        ("is forbidden: failed quota: small: must specify limits.cpu", "QuotaExceeded"),
        ('is forbidden: violates PodSecurity "baseline:latest"', "NotAllowed"),
        (
            'is forbidden: error looking up service account me/x: serviceaccount "x" not found',
            "ServiceAccountMissing",
        ),
        (NO_RIGHT, "NotAllowed"),
        ("is forbidden: because", "NotAllowed"),
        ("admission webhook said no", "PodRefused"),
    ],
)
def test_what_never_became_a_pod(said: str, reason: str) -> None:
    assert reason_of_workload({}, [event("FailedCreate", said)]).name == reason
    failing = {"type": "ReplicaFailure", "status": "True", "message": said}
    assert reason_of_workload({"conditions": [failing]}, ()).name == reason


def test_an_older_refusal_does_not_count() -> None:
    said = [event("FailedCreate", "quota"), event("SuccessfulCreate", "made")]
    assert reason_of_workload({}, said).name == "Starting"


def test_long_texts_are_cut() -> None:
    assert len(of_pod(unschedulable("x" * 5000), ()).text) == MAX_LENGTH

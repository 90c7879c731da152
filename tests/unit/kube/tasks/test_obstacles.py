"""Why a Pod does not start, and whether waiting helps."""

from typing import Any

import pytest
from tests.unit.kube.tasks.sample_pods import container, pod

from clew.kube.controller.model import Event
from clew.kube.objects import Json
from clew.kube.tasks.obstacles import find_obstacle, needs_events


def waiting(reason: str, message: str = "") -> Json:
    return pod("Pending", container("main", waiting={"reason": reason, "message": message}))


def unscheduled(message: str) -> Json:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    return pod("Pending", conditions=(condition,))


@pytest.mark.parametrize(
    ("found", "text", "hopeless", "ends", "transient"),
    [
        (
            waiting("ImagePullBackOff", "Back-off pulling image: dial tcp: i/o timeout"),
            "The image cannot be pulled (main:1)",
            False,
            True,
            True,
        ),
        (
            waiting("ErrImagePull", "failed to resolve reference: main:1: not found"),
            "The image cannot be pulled (main:1)",
            False,
            True,
            True,
        ),
        (
            waiting("ImagePullBackOff", "failed to resolve reference: main:1: not found"),
            "The image cannot be pulled (main:1)",
            True,
            True,
            False,
        ),
        (
            waiting("ErrImageNeverPull", "Container image is not present with pull policy"),
            "The image is not on the node, and may not be pulled",
            True,
            True,
            False,
        ),
        (
            waiting("InvalidImageName", "couldn't parse image name"),
            "The name of the image is not valid",
            True,
            True,
            False,
        ),
        (
            waiting("CreateContainerConfigError", 'secret "login" not found'),
            "A required Secret or ConfigMap is missing (main:1): secret",
            False,
            True,
            False,
        ),
        (
            unscheduled("0/2 nodes are available: 2 Insufficient cpu."),
            "No node has enough free resources: 0/2",
            False,
            False,
            False,
        ),
        (
            unscheduled('persistentvolumeclaim "data" not found'),
            "A volume of the Pod does not exist",
            False,
            True,
            False,
        ),
    ],
)
def test_obstacles(found: Json, text: str, hopeless: bool, ends: bool, transient: bool) -> None:
    obstacle = find_obstacle(found, ())
    assert obstacle is not None
    assert obstacle.text.startswith(text)
    assert (obstacle.hopeless, obstacle.ends, obstacle.transient) == (hopeless, ends, transient)


@pytest.mark.parametrize(
    "found",
    [
        pod("Pending"),
        waiting("ContainerCreating"),
        pod("Running", container("clew", running={}), container("main", running={})),
        pod("Running", container("clew", running={}), container("main", waiting={"reason": "x"})),
    ],
)
def test_it_is_only_starting(found: Json) -> None:
    assert find_obstacle(found, ()) is None


def test_the_helper_cannot_start_while_the_task_waits_for_it() -> None:
    reason = {
        "reason": "CreateContainerConfigError",
        "message": 'secret "clew-artifacts" not found',
    }
    running = container("main", running={"startedAt": "2026-01-01T00:00:00Z"})
    stuck = pod("Pending", container("clew", waiting=reason), running)
    found = find_obstacle(stuck, ())
    assert found is not None
    assert "clew-artifacts" in found.text
    assert found.ends


def test_a_volume_that_is_not_mounted_is_known_from_events() -> None:
    found = waiting("ContainerCreating")
    assert needs_events(found)
    about: dict[str, Any] = {"about_kind": "Pod", "about_name": "p", "about_uid": "uid-1"}
    missing = Event(
        uid="e",
        name="e",
        warning=True,
        reason="FailedMount",
        message='MountVolume.SetUp failed for volume "v0" : secret "login" not found',
        count=1,
        first=None,
        last=None,
        source="kubelet",
        **about,
    )
    obstacle = find_obstacle(found, [missing])
    assert obstacle is not None
    assert obstacle.name == "VolumeNotMounted"
    assert obstacle.ends
    assert 'secret "login" not found' in obstacle.text

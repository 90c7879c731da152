"""How a Pod ended, by its status."""

from typing import Any

import pytest

from clew.kube.scratch.pod_run import find_end


def pod(phase: str, *states: dict[str, Any], **status: Any) -> dict[str, Any]:
    containers = [
        {"name": f"c{number}", "image": "i", "imageID": "sha256:1", "state": state}
        for number, state in enumerate(states)
    ]
    return {"spec": {}, "status": {"phase": phase, "containerStatuses": containers, **status}}


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (pod("Succeeded", {"terminated": {"exitCode": 0}}), None),
        (pod("Failed", {"terminated": {"exitCode": 3}}), "its container c0 ended with status 3"),
        (
            pod("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
            "its container c0 ended with status 137 (OOMKilled)",
        ),
        (
            pod(
                "Failed",
                {"terminated": {"exitCode": 137}},
                reason="DeadlineExceeded",
                message="too long",
            ),
            "DeadlineExceeded: too long",
        ),
        (
            pod("Pending", {"waiting": {"reason": "CreateContainerConfigError", "message": "m"}}),
            "CreateContainerConfigError: m",
        ),
    ],
)
def test_ends(found: dict[str, Any], problem: str | None) -> None:
    end = find_end(found)
    assert end is not None
    assert end.problem == problem


@pytest.mark.parametrize("reason", ["ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_is_gone(reason: str) -> None:
    end = find_end(pod("Pending", {"waiting": {"reason": reason}}))
    assert end is not None
    assert end.image_gone


@pytest.mark.parametrize(
    "found",
    [
        pod("Pending"),
        pod("Running", {"running": {}}),
        pod("Pending", {"waiting": {"reason": "ContainerCreating"}}),
        pod("Pending", {"waiting": {"reason": "ErrImagePull"}}),
        {"spec": {}},
    ],
)
def test_it_may_still_succeed(found: dict[str, Any]) -> None:
    assert find_end(found) is None

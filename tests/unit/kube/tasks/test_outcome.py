"""How a Pod ended, by its status."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.kube.tasks.sample_pods import container, ended, pod

from clew.kube.objects import Json
from clew.kube.tasks.outcome import find_outcome, is_over, outcome_of_deleted

NOW = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
DONE = container("clew", terminated=ended(0))
OK = container("main", terminated=ended(0))


def main(status: int, reason: str | None = None, message: str = "") -> Json:
    return container("main", terminated=ended(status, reason, message))


def disruption(reason: str, message: str) -> dict[str, Any]:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
    }
    return {"conditions": (condition,)}


@pytest.mark.parametrize("phase", ["Succeeded", "Running"])
def test_success(phase: str) -> None:
    """Also before the phase says so."""
    helper = container("clew", terminated=ended(0, message='{"files": 2}'))
    found = find_outcome(pod(phase, helper, OK), NOW)
    assert found is not None
    assert is_over(pod(phase, helper, OK))
    assert (found.status, found.problem, found.transient) == (0, None, False)
    assert found.node == "node1"
    assert found.image_digest == "sha256:" + "1" * 64
    assert found.message == '{"files": 2}'
    assert found.started is not None
    assert found.ended is not None
    assert (found.ended - found.started).total_seconds() == 5


@pytest.mark.parametrize(
    ("found", "status", "problem"),
    [
        (pod("Failed", DONE, main(3)), 3, "it ended with status 3"),
        (pod("Failed", DONE, main(137)), 137, "it was killed by SIGKILL"),
        (pod("Failed", DONE, main(255)), 255, "it ended with status 255"),
        (
            pod("Failed", DONE, main(137, "OOMKilled")),
            137,
            "it used more memory than its limit of 64Mi, and was killed",
        ),
        (
            pod("Failed", DONE, main(128, "StartError", "no such user")),
            None,
            "its container cannot be started: no such user",
        ),
        (
            pod("Failed", container("clew", terminated=ended(1, message="S3 is away")), OK),
            0,
            "its outputs could not be stored: S3 is away",
        ),
        (
            pod("Failed", container("clew", terminated=ended(137, "OOMKilled")), OK),
            0,
            "the container that moves its data used more memory than its node had, and was killed",
        ),
        (
            pod(
                "Failed",
                DONE,
                main(143),
                reason="DeadlineExceeded",
                message="Pod was active on the node longer than the specified deadline",
            ),
            143,
            (
                "it ran longer than its time limit: Pod was active on the node longer than the "
                "specified deadline"
            ),
        ),
    ],
)
def test_the_task_is_the_cause(found: Json, status: int | None, problem: str) -> None:
    outcome = find_outcome(found, NOW)
    assert outcome is not None
    assert (outcome.status, outcome.problem) == (status, problem)
    assert not outcome.transient


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (
            pod("Failed", reason="Evicted", message="The node was low on resource: memory."),
            "it was evicted from its node: The node was low on resource: memory.",
        ),
        (
            pod(
                "Failed",
                DONE,
                main(137),
                **disruption("PreemptionByScheduler", "preempting to accommodate a higher one"),
            ),
            (
                "a Pod of higher priority took its place on the node: preempting to accommodate a "
                "higher one"
            ),
        ),
        (
            pod("Failed", DONE, main(137), **disruption("EvictionByEvictionAPI", "")),
            "it was evicted, because its node is being emptied",
        ),
        (
            pod("Failed", reason="OutOfcpu", message="Pod was rejected: Node didn't have enough"),
            "its node refused it: Pod was rejected: Node didn't have enough",
        ),
        (
            pod("Failed", reason="UnexpectedAdmissionError", message="Pod was rejected: no device"),
            "its node refused it: Pod was rejected: no device",
        ),
        (pod("Failed", reason="NodeShutdown"), "its node was shut down: NodeShutdown"),
        (pod("Failed", reason="Terminated", message="bye"), "its node was shut down: bye"),
        (
            pod("Failed", main(137, "ContainerStatusUnknown", "The container could not be found")),
            "its node lost the status of the container",
        ),
        (
            pod("Failed", DONE, main(143), deleted="2026-03-01T12:00:59Z"),
            "a user or another controller deleted its Pod while it ran",
        ),
        (
            pod("Running", container("main", running={}), deleted="2026-03-01T12:00:00Z"),
            "it was deleted, and its node node1 does not answer",
        ),
    ],
)
def test_the_cluster_is_the_cause(found: Json, problem: str) -> None:
    """Another try makes sense."""
    outcome = find_outcome(found, NOW)
    assert outcome is not None
    assert outcome.problem == problem
    assert outcome.transient


def test_a_helper_that_fails_ends_the_wait_of_its_task() -> None:
    log = "Traceback …\n  File …\nno such object\n"
    helper = container("clew", terminated=ended(1, message=log))
    outcome = find_outcome(pod("Running", helper, container("main", running={})), NOW)
    assert outcome is not None
    assert outcome.problem == "its inputs could not be fetched: no such object"
    assert outcome.status is None


@pytest.mark.parametrize(
    "found",
    [
        pod("Pending"),
        pod("Pending", container("main", waiting={"reason": "ImagePullBackOff"})),
        pod("Running", container("clew", running={}), container("main", running={})),
        pod("Running", container("clew", running={}), OK),
        pod("Running", DONE, container("main", running={})),
        pod("Running", container("main", running={}), deleted="2026-03-01T12:00:59Z"),
    ],
)
def test_it_may_still_succeed(found: Json) -> None:
    assert find_outcome(found, NOW) is None
    assert not is_over(found)


@pytest.mark.parametrize(
    ("message", "transient"), [("stat /clew/bin/clew-step: no such file", True), ("no user", False)]
)
def test_a_task_that_cannot_start_ends_the_wait_of_its_helper(
    message: str, transient: bool
) -> None:
    helper = container("clew", running={})
    outcome = find_outcome(pod("Running", helper, main(128, "StartError", message)), NOW)
    assert outcome is not None
    assert outcome.problem == f"its container cannot be started: {message}"
    assert (outcome.status, outcome.transient) == (None, transient)


def test_a_helper_that_fails_at_once_is_the_cause() -> None:
    """The node has started the task all the same, without what the helper installs."""
    helper = container("clew", terminated=ended(1, message="S3 is away"))
    task = main(128, "StartError", "stat /clew/bin/clew-step: no such file")
    outcome = find_outcome(pod("Failed", helper, task), NOW)
    assert outcome is not None
    assert outcome.problem == "its inputs could not be fetched: S3 is away"
    assert not outcome.transient
    outcome = find_outcome(pod("Failed", DONE, task), NOW)
    assert outcome is not None
    assert outcome.transient


def test_a_preempted_pod_that_is_gone() -> None:
    last = pod(
        "Running",
        container("main", running={}),
        deleted="2026-03-01T12:00:59Z",
        **disruption("PreemptionByScheduler", ""),
    )
    outcome = outcome_of_deleted(last, NOW)
    assert outcome.problem == "a Pod of higher priority took its place on the node"


def test_a_pod_that_is_gone() -> None:
    """What was seen last decides: it may have ended before it was deleted."""
    outcome = outcome_of_deleted(pod("Running", container("main", running={})), NOW)
    assert outcome.transient
    assert outcome.problem == "a user or another controller deleted its Pod while it ran"
    assert (
        outcome_of_deleted(pod("Succeeded", DONE, OK, deleted="2026-03-01T12:00:59Z"), NOW).problem
        is None
    )


def test_texts_of_a_pod_are_cut() -> None:
    outcome = find_outcome(pod("Failed", DONE, main(128, "StartError", "x\n" * 10_000)), NOW)
    assert outcome is not None
    assert outcome.problem is not None
    assert len(outcome.problem) <= 500
    assert "\n" not in outcome.problem

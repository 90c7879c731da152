"""From a training job and its Pods to what is created, deleted and written."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.kube.sample_resources import NOW
from tests.unit.kube.training.sample_jobs import (
    STARTED,
    decide_for,
    job,
    names,
    next_job,
    pod,
    pytorchjob,
    reason,
    replicas,
    states,
    tfjob,
)

from clew.kube.controller.options import Options
from clew.kube.objects import Json, format_time
from clew.kube.training.lifecycle import decide
from clew.kube.training.model import JobDecision, JobState

ENDED = "2026-03-01T12:00:00Z"


def started(of: Json) -> Json:
    """The job once its Pods are being created."""
    return next_job(of, decide_for(of))


def failing(policy: str, count: int = 1, **run: Any) -> Json:
    return tfjob(Worker=replicas(count, restartPolicy=policy), policy=run)


# -- start


def test_all_pods_and_services_are_created_at_once() -> None:
    made = decide(tfjob(Chief=1, Worker=2, PS=1), JobState(NOW), Options())
    expected = ["mnist-chief-0", "mnist-ps-0", "mnist-worker-0", "mnist-worker-1"]
    assert names(made.pods) == names(made.services) == expected
    assert states(made) == {"Created": "True"}
    assert made.status["startTime"] == STARTED
    assert reason(made)[0] == "Starting"


def test_of_a_large_template_few_copies_are_made_at_the_same_time() -> None:
    large = replicas(1000, pod={"nodeSelector": {"size": "x" * 1_000_000}})
    of, there = tfjob(Worker=large), JobState(NOW)
    first = decide(of, there, Options())
    assert names(first.pods) == names(first.services)
    assert names(first.pods) == [f"mnist-worker-{number}" for number in range(3)]
    pods = [pod(of, "Worker", number, "Pending") for number in range(3)]
    assert names(decide(of, JobState(NOW, pods=pods), Options()).pods)[0] == "mnist-worker-3"
    assert len(decide(tfjob(Worker=1000), there, Options()).pods) == 1000


def test_with_its_pods_nothing_more_is_created_or_written() -> None:
    of = started(tfjob(Worker=2))
    pods = [pod(of, "Worker", n) for n in range(2)]
    first = decide_for(of, *pods)
    assert states(first) == {"Created": "True", "Running": "True"}
    assert first.status["replicaStatuses"]["Worker"]["active"] == 2
    assert reason(first) == ("Running", "")
    assert first.pods == first.services == first.delete_pods == first.delete_children == ()
    assert decide_for(next_job(of, first), *pods, after=99).status == first.status


def test_only_what_is_missing_is_created() -> None:
    of = started(tfjob(Worker=3))
    made = decide_for(of, pod(of, "Worker", 0), pod(of, "Worker", 2, deleting=True))
    assert names(made.pods) == ["mnist-worker-1"], "a name is free once its Pod is gone"


def test_a_job_of_another_manager_is_left_to_it() -> None:
    of = tfjob(Worker=1, policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    assert decide(of, JobState(NOW), Options()) == JobDecision({})


@pytest.mark.parametrize(
    ("types", "text"),
    [
        ({}, "names no replicas"),
        ({"Boss": replicas(1)}, "names no replicas"),
        ({"Worker": replicas(1), "Boss": replicas(1)}, "may only have"),
        ({"Worker": replicas(1, "main")}, "spec.tfReplicaSpecs.Worker.template.spec.containers"),
        ({"Worker": replicas(2**31 - 1)}, "more than 4096 replicas"),
        ({"Worker": replicas(4000), "PS": replicas(97)}, "more than 4096 replicas"),
    ],
)
def test_what_cannot_run_is_refused_by_name(types: Json, text: str) -> None:
    made = decide(job("TFJob", types), JobState(NOW), Options())
    assert made.pods == made.services == ()
    assert reason(made)[0] == "InvalidSpec"
    assert text in reason(made)[1]


def test_the_chief_or_a_worker_makes_a_job_run() -> None:
    of = started(tfjob(Chief=1, Worker=1))
    waiting = decide_for(of, pod(of, "Chief", 0, "Pending"), pod(of, "Worker", 0))
    assert "Running" not in states(waiting)
    assert states(decide_for(of, pod(of, "Chief", 0)))["Running"] == "True"
    of = started(pytorchjob(Master=1, Worker=1))
    assert states(decide_for(of, pod(of, "Master", 0)))["Running"] == "True"


def test_the_status_says_which_replica_does_not_run_and_why() -> None:
    of = started(tfjob(Worker=4))
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    made = decide_for(
        of,
        pod(of, "Worker", 0),
        pod(of, "Worker", 1),
        pod(of, "Worker", 2, "Pending", state=waiting),
    )
    name, text = reason(made)
    assert name == "ImageNotPulled"
    assert text.startswith("2 of 4 replicas do not run. Worker 2: The image cannot be pulled")


# -- success


@pytest.mark.parametrize(
    ("types", "policy", "done", "ends"),
    [
        ({"Chief": 1, "Worker": 1}, "", [("Chief", 0)], True),
        ({"Chief": 1, "Worker": 1}, "", [("Worker", 0)], False),
        ({"Master": 1, "PS": 1}, "", [("Master", 0)], True),
        ({"Worker": 2}, "", [("Worker", 0)], True),
        ({"Worker": 2}, "", [("Worker", 1)], False),
        ({"Worker": 2}, "AllWorkers", [("Worker", 0)], False),
        ({"Worker": 2}, "AllWorkers", [("Worker", 0), ("Worker", 1)], True),
        ({"PS": 1, "Worker": 1}, "", [("PS", 0)], False),
    ],
)
def test_when_a_tfjob_has_succeeded(
    types: dict[str, int], policy: str, done: list[tuple[str, int]], ends: bool
) -> None:
    of = started(job("TFJob", {t: replicas(n) for t, n in types.items()}, successPolicy=policy))
    pods = [
        pod(of, t, n, "Succeeded", exit=0) if (t, n) in done else pod(of, t, n)
        for t, count in types.items()
        for n in range(count)
    ]
    made = decide_for(of, *pods)
    assert ("Succeeded" in states(made)) == ends
    if ends:
        assert states(made).get("Running", "False") == "False"
        assert made.status["completionTime"] == ENDED
        assert made.pods == made.delete_pods == ()
        counts = made.status["replicaStatuses"].values()
        assert not any("active" in each for each in counts), "they are counted as succeeded"
        assert sum(each["succeeded"] for each in counts) == len(pods)
        assert [e.reason for e in made.events] == ["TFJobSucceeded"]


def test_when_a_pytorchjob_has_succeeded() -> None:
    of = started(pytorchjob(Master=1, Worker=1))
    failed = pod(of, "Worker", 0, "Failed", exit=1)
    made = decide_for(of, pod(of, "Master", 0, "Succeeded", exit=0), failed)
    assert states(made)["Succeeded"] == "True", "the master decides"
    of = started(pytorchjob(Worker=2))
    one = [pod(of, "Worker", 0, "Succeeded", exit=0), pod(of, "Worker", 1)]
    assert "Succeeded" not in states(decide_for(of, *one))
    both = [pod(of, "Worker", n, "Succeeded", exit=0) for n in range(2)]
    assert states(decide_for(of, *both))["Succeeded"] == "True"
    of = started(job("PyTorchJob", {"Worker": replicas(2, "pytorch")}, elasticPolicy={}))
    assert states(decide_for(of, *one))["Succeeded"] == "True", "any worker of an elastic job"


def test_a_success_counts_even_if_the_operator_sees_it_too_late() -> None:
    of = started(tfjob(Worker=1, policy={"activeDeadlineSeconds": 5, "backoffLimit": 0}))
    late = decide_for(of, pod(of, "Worker", 0, "Succeeded", exit=0, again=1), after=60)
    assert states(late)["Succeeded"] == "True"


# -- failure


@pytest.mark.parametrize(
    ("policy", "code", "permanent"),
    [
        ("Never", 137, True),
        ("ExitCode", 1, True),
        ("ExitCode", 127, True),
        ("ExitCode", 128, False),
        ("ExitCode", 137, False),
        ("ExitCode", None, False),
        ("OnFailure", 1, False),
        ("Always", 1, False),
    ],
)
def test_which_failure_ends_a_job(policy: str, code: int | None, permanent: bool) -> None:
    of = started(failing(policy))
    made = decide_for(of, pod(of, "Worker", 0, "Failed", exit=code))
    assert ("Failed" in states(made)) == permanent
    assert names(made.delete_pods) == ([] if permanent else ["mnist-worker-0"])
    assert ("Restarting" in states(made)) == (not permanent)


def test_a_failed_job_says_what_failed() -> None:
    of = started(tfjob(Worker=3))
    end = {"reason": "Error", "message": "Traceback:\n  line 1\nno data\n"}
    pods = [pod(of, "Worker", n, "Failed", exit=3, end=end) for n in (1, 2)]
    made = decide_for(of, pod(of, "Worker", 0), *pods)
    assert reason(made) == (
        "Failed",
        "worker 1 failed: its container tensorflow ended with status 3: no data, and 1 more.",
    )
    told = {event.reason for event in made.events}
    assert told == {"TFJobFailed", "ExitedWithCode"}
    assert made.status["replicaStatuses"]["Worker"]["active"] == 1, "it is not stopped"


def test_out_of_memory_is_said_in_words() -> None:
    of = started(tfjob(Worker=1))
    made = decide_for(of, pod(of, "Worker", 0, "Failed", exit=137, end={"reason": "OOMKilled"}))
    assert "used more memory than its limit" in reason(made)[1]


def test_a_deleted_pod_is_no_failure() -> None:
    of = started(tfjob(Worker=1))
    made = decide_for(of, pod(of, "Worker", 0, "Failed", exit=143, deleting=True))
    assert "Failed" not in states(made)
    assert names(decide_for(of).pods) == ["mnist-worker-0"]


def test_a_failure_is_counted_once_even_if_the_operator_is_killed() -> None:
    of = started(failing("ExitCode"))
    failed = pod(of, "Worker", 0, "Failed", exit=137, uid="first")
    made = decide_for(of, failed)
    assert made.status["restarts"] == [{"replica": "worker 0", "count": 1, "pod": "first"}]
    again = decide_for(next_job(of, made), failed)
    assert again.status["restarts"] == made.status["restarts"], "its deletion was not seen yet"
    assert names(again.delete_pods) == ["mnist-worker-0"]
    gone = decide_for(next_job(of, made))
    assert names(gone.pods) == ["mnist-worker-0"]
    second = decide_for(next_job(of, gone), pod(of, "Worker", 0, "Failed", exit=137, uid="second"))
    assert second.status["restarts"] == [{"replica": "worker 0", "count": 2, "pod": "second"}]


def test_each_restart_waits_longer_than_the_one_before() -> None:
    of = failing("ExitCode")
    waits = []
    for number in range(1, 13):
        failed = pod(of, "Worker", 0, "Failed", exit=137, uid=str(number))
        made = decide_for(of, failed)
        waits.append(made.recheck - NOW if made.recheck else timedelta(0))
        assert bool(made.delete_pods) == (made.recheck is None)
        of = next_job(of, made)
    assert [wait.total_seconds() for wait in waits[:5]] == [0, 1, 2, 4, 8]
    assert waits[-1] == timedelta(minutes=5)


def test_running_and_restarting_replace_each_other() -> None:
    of = started(failing("ExitCode"))
    of = next_job(of, decide_for(of, pod(of, "Worker", 0)))
    made = decide_for(of, pod(of, "Worker", 0, "Failed", exit=137))
    assert states(made) == {"Created": "True", "Restarting": "True"}
    assert "TFJobRestarting" in {event.reason for event in made.events}
    of = next_job(of, made)
    made = decide_for(of, pod(of, "Worker", 0, uid="second"))
    assert states(made) == {"Created": "True", "Running": "True"}


def test_other_workers_go_on_without_a_dynamic_one() -> None:
    of = started(job("TFJob", {"Worker": replicas(2)}, enableDynamicWorker=True))
    made = decide_for(of, pod(of, "Worker", 0), pod(of, "Worker", 1, "Failed", exit=1))
    assert states(made) == {"Created": "True", "Running": "True"}
    assert made.pods == made.delete_pods == ()


# -- limits


@pytest.mark.parametrize(("limit", "failures", "ends"), [(0, 1, True), (2, 2, False), (2, 3, True)])
def test_the_backoff_limit_counts_pods_that_were_replaced(
    limit: int, failures: int, ends: bool
) -> None:
    of = failing("ExitCode", backoffLimit=limit)
    for number in range(failures):
        failed = pod(of, "Worker", 0, "Failed", exit=137, uid=str(number))
        made = decide_for(of, failed)
        of = next_job(of, made)
    assert ("Failed" in states(made)) == ends
    if ends:
        assert reason(made)[0] == "BackoffLimitExceeded"
        assert str(failures) in reason(made)[1]


def test_the_backoff_limit_counts_restarts_in_place_over_all_replicas() -> None:
    of = started(failing("OnFailure", 2, backoffLimit=3))
    crashing = {"waiting": {"reason": "CrashLoopBackOff"}}
    one = [pod(of, "Worker", 0, again=2), pod(of, "Worker", 1, again=1)]
    assert "Failed" not in states(decide_for(of, *one))
    many = [pod(of, "Worker", 0, again=2), pod(of, "Worker", 1, again=1, state=crashing)]
    made = decide_for(of, *many)
    assert reason(made)[0] == "BackoffLimitExceeded"
    assert names(made.delete_pods) == ["mnist-worker-0", "mnist-worker-1"], "they would go on"


def test_the_deadline_is_a_time_at_which_the_job_is_decided_again() -> None:
    of = started(tfjob(Worker=1, policy={"activeDeadlineSeconds": 60}))
    running = pod(of, "Worker", 0)
    early = decide_for(of, running, after=59)
    assert early.recheck == NOW + timedelta(seconds=60)
    assert "Failed" not in states(early)
    late = decide_for(next_job(of, early), running, after=60)
    assert reason(late)[0] == "DeadlineExceeded"
    assert names(late.delete_pods) == ["mnist-worker-0"], "whatever the clean-pod policy"
    assert names(decide_for(next_job(of, late), running, after=61).delete_pods) == [
        "mnist-worker-0"
    ], "also if the operator was killed before it was deleted"


# -- after the end


@pytest.mark.parametrize(
    ("policy", "going"),
    [
        (None, []),
        ("None", []),
        ("Running", ["mnist-ps-0", "mnist-worker-1"]),
        ("All", ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"]),
    ],
)
def test_which_pods_are_cleaned_up(policy: str | None, going: list[str]) -> None:
    of = started(tfjob(PS=1, Worker=2, policy={"cleanPodPolicy": policy} if policy else {}))
    pods = [
        pod(of, "PS", 0),
        pod(of, "Worker", 0, "Succeeded", exit=0),
        pod(of, "Worker", 1, "Pending"),
    ]
    made = decide_for(of, *pods)
    assert sorted(names(made.delete_pods)) == sorted(names(made.delete_children)) == going


def test_nothing_that_happens_later_changes_a_job_that_has_ended() -> None:
    of = started(tfjob(Worker=2))
    ended = decide_for(of, pod(of, "Worker", 0, "Succeeded", exit=0), pod(of, "Worker", 1))
    of = next_job(of, ended)
    later = decide_for(of, pod(of, "Worker", 1, "Failed", exit=1), after=30)
    assert later.status == ended.status
    assert later.pods == ()


def test_the_job_is_deleted_when_its_time_is_over() -> None:
    of = started(tfjob(Worker=1, policy={"ttlSecondsAfterFinished": 10}))
    done = pod(of, "Worker", 0, "Succeeded", exit=0)
    ended = decide_for(of, done)
    assert (ended.delete_job, ended.recheck) == (False, NOW + timedelta(seconds=10))
    of = next_job(of, ended)
    assert decide_for(of, done, after=10).delete_job
    of["spec"]["runPolicy"]["suspend"] = True
    assert not decide_for(of, done, after=10).delete_job


def test_times_beyond_the_calendar_are_no_limits() -> None:
    policy = {"activeDeadlineSeconds": 2**62, "ttlSecondsAfterFinished": 2**31 - 1}
    of = started(tfjob(Worker=1, policy=policy))
    assert "Failed" not in states(decide_for(of, pod(of, "Worker", 0), after=9999))


# -- suspend, scale


def test_a_suspended_job_keeps_nothing_that_runs() -> None:
    of = started(tfjob(Worker=2))
    of = next_job(of, decide_for(of, pod(of, "Worker", 0)))
    of["spec"]["runPolicy"]["suspend"] = True
    pods = [pod(of, "Worker", 0), pod(of, "Worker", 1, "Succeeded", exit=0)]
    made = decide_for(of, *pods)
    assert states(made) == {"Created": "True", "Running": "False", "Suspended": "True"}
    assert names(made.delete_pods) == ["mnist-worker-0"]
    assert names(made.delete_children) == ["mnist-worker-0", "mnist-worker-1"]
    assert made.pods == made.services == ()
    assert reason(made)[0] == "Suspended"
    assert [event.reason for event in made.events] == ["TFJobSuspended"]


def test_a_resumed_job_starts_again_with_a_new_deadline() -> None:
    of = tfjob(Worker=1, policy={"suspend": True, "activeDeadlineSeconds": 60})
    suspended = decide_for(of)
    assert suspended.pods == ()
    assert "startTime" not in suspended.status
    of = next_job(of, suspended)
    of["spec"]["runPolicy"]["suspend"] = False
    made = decide_for(of, after=100)
    assert names(made.pods) == ["mnist-worker-0"]
    assert states(made) == {"Created": "True", "Suspended": "False"}
    assert made.status["startTime"] == format_time(NOW + timedelta(seconds=100))
    assert made.recheck == NOW + timedelta(seconds=160)
    assert [event.reason for event in made.events] == ["TFJobResumed"]


def test_a_job_of_fewer_workers_gives_up_the_last_ones() -> None:
    wide = job("PyTorchJob", {"Worker": replicas(3, "pytorch")}, elasticPolicy={})
    narrow = started(job("PyTorchJob", {"Worker": replicas(2, "pytorch")}, elasticPolicy={}))
    made = decide_for(narrow, *(pod(wide, "Worker", n) for n in range(3)))
    assert names(made.delete_pods) == ["mnist-worker-2"]
    assert made.pods == ()


def test_a_gang_s_group_is_created_with_the_job_and_goes_with_its_end() -> None:
    options = Options(gang_scheduler="volcano")
    made = decide_for(tfjob(Worker=2), options=options)
    assert [each["kind"] for each in made.others] == ["PodGroup"]

"""Tasks, and the groups that are made up from what is in them."""

from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from clew.documents.ids import ExecutionId, RunId, TaskId, Uid
from clew.documents.pipelines.runs import Artifact, RunState, RunWithTasks, Task, TaskState
from clew.server.kfp.tasks import task_details

NOON = datetime(2030, 1, 1, 12, microsecond=5, tzinfo=UTC)


def task(name: str, state: TaskState, began: int | None = None, ended: int | None = None) -> Task:
    return Task(
        id=TaskId(f"r1/{name}"),
        name=name,
        state=state,
        started=None if began is None else NOON.replace(second=began),
        ended=None if ended is None else NOON.replace(second=ended),
        seconds=None,
        parameters={},
        platform={},
        outputs={},
        artifacts={},
        reused_from=None,
        why=None,
        error="it broke" if state == "failed" else None,
        execution=ExecutionId("e1") if began is not None else None,
        attempts=(),
        key=None,
        parts={},
    )


def told(*tasks: Task, state: RunState = "running") -> dict[str, dict[str, Any]]:
    run = RunWithTasks(
        id=RunId("r1"),
        uid=Uid("uid"),
        name=None,
        state=state,
        started=None,
        ended=None,
        seconds=None,
        file=None,
        inputs={},
        outputs={},
        error=None,
        tasks=tasks,
    )
    found = task_details("uid", run)
    assert len({one["task_id"] for one in found}) == len(found)
    assert {one["run_id"] for one in found} == {"uid"}
    return {one["task_id"].removeprefix("r1/"): one for one in found}


def test_a_task_has_its_times_and_its_error() -> None:
    found = told(task("a", "failed", 1, 2), task("b", "pending"), state="failed")
    assert found["a"]["start_time"] == "2030-01-01T12:00:01.000005Z"
    assert found["a"]["error"]["message"] == "it broke"
    assert [one["state"] for one in found["a"]["state_history"]] == ["RUNNING", "FAILED"]
    assert found["b"]["state"] == "PENDING"
    assert not {"start_time", "state_history", "error"} & set(found["b"])


def test_what_was_reused_has_succeeded() -> None:
    assert told(task("a", "reused", 1, 2))["a"]["state"] == "SUCCEEDED"


def test_groups_come_before_what_is_in_them_and_span_it() -> None:
    inner = (task("loop/0/a", "succeeded", 3, 4), task("loop/1/a", "succeeded", 2, 9))
    found = told(task("first", "succeeded", 0, 1), *inner, state="succeeded")
    assert list(found) == ["first", "loop", "loop/0", "loop/0/a", "loop/1", "loop/1/a"]
    assert found["loop"]["start_time"].endswith("02.000005Z")
    assert found["loop"]["end_time"].endswith("09.000005Z")
    assert found["loop"]["child_tasks"] == [{"task_id": "r1/loop/0"}, {"task_id": "r1/loop/1"}]
    assert found["loop/0/a"]["parent_task_id"] == "r1/loop/0"
    assert "parent_task_id" not in found["loop"]


def test_a_group_runs_until_its_run_ends() -> None:
    done, other = task("loop/0/a", "succeeded", 1, 2), task("loop/1/a", "failed", 1, 3)
    assert told(done)["loop"]["state"] == "RUNNING"
    assert "end_time" not in told(done)["loop"]
    assert told(done, state="succeeded")["loop"]["state"] == "SUCCEEDED"
    assert told(done, other, state="failed")["loop"]["state"] == "FAILED"
    skipped = task("condition/a", "skipped")
    assert told(skipped, state="succeeded")["condition"]["state"] == "SKIPPED"


def test_one_of_many_artifacts_has_its_number() -> None:
    artifact = Artifact(uri="/a", type="system.Model")
    artifacts = {"model": (artifact,), "parts": (artifact, artifact)}
    one = structs.replace(task("a", "succeeded", 1, 2), artifacts=artifacts)
    assert told(one)["a"]["outputs"] == {
        "model": {"artifact_ids": ["r1/a:model"]},
        "parts": {"artifact_ids": ["r1/a:parts/0", "r1/a:parts/1"]},
    }

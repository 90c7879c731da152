"""Tasks, and the groups that are made up from what is in them."""

from typing import Any

from clew.server.kfp.tasks import task_details


def task(name: str, state: str, began: int | None = None, ended: int | None = None) -> Any:
    return {
        "id": f"r1/{name}",
        "name": name,
        "state": state,
        "started": None if began is None else f"2030-01-01T00:00:{began:02}.000000Z",
        "ended": None if ended is None else f"2030-01-01T00:00:{ended:02}.000000Z",
        "execution": "e1" if began is not None else None,
        "error": "it broke" if state == "failed" else None,
        "artifacts": {},
    }


def told(*tasks: Any, state: str = "running") -> dict[str, dict[str, Any]]:
    found = task_details("uid", {"id": "r1", "state": state, "tasks": list(tasks)})
    assert len({one["task_id"] for one in found}) == len(found)
    assert {one["run_id"] for one in found} == {"uid"}
    return {one["task_id"].removeprefix("r1/"): one for one in found}


def test_a_task_has_its_times_and_its_error() -> None:
    found = told(task("a", "failed", 1, 2), task("b", "pending"), state="failed")
    assert found["a"]["start_time"] == "2030-01-01T00:00:01.000000Z"
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
    assert found["loop"]["start_time"].endswith("02.000000Z")
    assert found["loop"]["end_time"].endswith("09.000000Z")
    assert found["loop"]["child_tasks"] == [{"task_id": "r1/loop/0"}, {"task_id": "r1/loop/1"}]
    assert found["loop/0/a"]["parent_task_id"] == "r1/loop/0"
    assert "parent_task_id" not in found["loop"]


def test_a_group_goes_on_until_its_run_is_over() -> None:
    done, other = task("loop/0/a", "succeeded", 1, 2), task("loop/1/a", "failed", 1, 3)
    assert told(done)["loop"]["state"] == "RUNNING"
    assert "end_time" not in told(done)["loop"]
    assert told(done, state="succeeded")["loop"]["state"] == "SUCCEEDED"
    assert told(done, other, state="failed")["loop"]["state"] == "FAILED"
    skipped = task("condition/a", "skipped")
    assert told(skipped, state="succeeded")["condition"]["state"] == "SKIPPED"


def test_one_of_many_artifacts_has_its_number() -> None:
    one = {**task("a", "succeeded", 1, 2), "artifacts": {"model": [{}], "parts": [{}, {}]}}
    assert told(one)["a"]["outputs"] == {
        "model": {"artifact_ids": ["r1/a:model"]},
        "parts": {"artifact_ids": ["r1/a:parts/0", "r1/a:parts/1"]},
    }

"""An inner pipeline is retried as a whole, with a growing delay."""

from tests.unit.pipelines.compiled_pipelines import leaf, pipeline, task

from clew.pipelines.engine.engine import Engine, Instruction, StartTask, TaskResult
from clew.pipelines.spec.values import Values

COMPONENTS = {
    "comp": leaf(outputs={"Output": "NUMBER_INTEGER"}),
    "inner": {"dag": {"tasks": {"a": task("comp"), "b": task("comp", ["a"])}}},
}
POLICY = {"maxRetryCount": 2, "backoffDuration": "3s", "backoffFactor": 2.0}
WORKED, FAILED = TaskResult(outputs=Values({"Output": 1})), TaskResult(error="broken")


def runs(instructions: list[Instruction]) -> list[tuple[str, float]]:
    return [(one.node.path, one.wait) for one in instructions if isinstance(one, StartTask)]


def begun() -> Engine:
    what = pipeline({"all": task("inner", retryPolicy=POLICY), "after": task("comp", ["all"])},
                    COMPONENTS)  # fmt: skip
    engine = Engine(what, Values())
    assert runs(engine.begin()) == [("all/a", 0.0)]
    return engine


def test_a_failed_group_is_retried_after_its_backoff() -> None:
    engine = begun()
    assert runs(engine.task_ended("all/a", WORKED)) == [("all/b", 0.0)]
    assert runs(engine.task_ended("all/b", FAILED)) == [("all", 3.0)]
    assert not engine.done
    assert runs(engine.retry_group("all")) == [("all/a", 0.0)]
    assert runs(engine.task_ended("all/a", FAILED)) == [("all", 6.0)]
    engine.retry_group("all")
    engine.task_ended("all/a", WORKED)
    assert runs(engine.task_ended("all/b", WORKED)) == [("after", 0.0)]
    engine.task_ended("after", WORKED)
    assert engine.done
    assert engine.failed is None


def test_a_group_fails_after_its_last_retry() -> None:
    engine = begun()
    for wait in (3.0, 6.0):
        assert runs(engine.task_ended("all/a", FAILED)) == [("all", wait)]
        engine.retry_group("all")
    assert runs(engine.task_ended("all/a", FAILED)) == []
    assert engine.done
    assert engine.failed is not None
    assert engine.failed.error == "all/a failed: broken"


def test_a_group_that_waits_is_not_canceled_as_a_task() -> None:
    engine = begun()
    engine.task_ended("all/a", FAILED)
    assert engine.cancel() == []

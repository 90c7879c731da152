"""Drives an engine to its end: a test only says what the tasks do."""

from collections.abc import Callable
from typing import Any

from tests.unit.pipelines.compiled_pipelines import leaf

from clew.pipelines.engine.engine import READY_LIMIT, Engine, StartTask, TaskFinished, TaskResult
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.ir import Pipeline
from clew.pipelines.spec.values import Values

INT = {"comp": leaf({"x": "NUMBER_INTEGER?", "xs": "LIST?"}, {"Output": "NUMBER_INTEGER"})}


class EngineDriver:
    """Runs every task that the engine starts: `work` returns its output, or raises. `choose` picks
    which of the ready tasks ends next."""

    def __init__(
        self,
        what: Pipeline,
        work: Callable[[Node], Any] = lambda node: 1,
        *,
        inputs: dict[str, Any] | None = None,
        choose: Callable[[int], int] = lambda n: 0,
        ready_limit: int = READY_LIMIT,
    ) -> None:
        self.engine = Engine(
            what, Values(inputs or {}), {"pipeline_job_name": "job"}, ready_limit=ready_limit
        )
        self.ran: list[str] = []
        self.states: dict[str, str] = {}
        self.why: dict[str, str | None] = {}
        self.waits: list[float] = []
        self.max_ready = 0
        ready: list[StartTask] = []
        instructions = self.engine.begin()
        while True:
            for one in instructions:
                if isinstance(one, TaskFinished):
                    assert one.node.path not in self.states
                    self.states[one.node.path] = one.node.state
                    self.why[one.node.path] = one.why
                else:
                    ready.append(one)
            self.max_ready = max(self.max_ready, len(ready))
            if not ready:
                break
            run = ready.pop(choose(len(ready)))
            self.ran.append(run.node.path)
            self.waits.append(run.wait)
            try:
                outcome = TaskResult(outputs=Values({"Output": work(run.node)}))
            except RuntimeError as error:
                outcome = TaskResult(error=str(error))
            instructions = self.engine.task_ended(run.node.path, outcome)
        assert self.engine.done


def fails(*names: str) -> Callable[[Node], int]:
    def work(node: Node) -> int:
        if node.task.name in names:
            raise RuntimeError("broken")
        return 1

    return work

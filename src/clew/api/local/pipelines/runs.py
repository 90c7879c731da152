"""Compare two pipeline runs, and repeat all tasks of one."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import structs

from clew.api.local.repeat import repeat as repeat_execution
from clew.documents.comparisons.differences import RunDiff, TaskDiff, Verdict
from clew.documents.executions.repeats import RepeatedRun, RepeatedTask, RepeatOptions
from clew.documents.ids import TaskId, Uid
from clew.documents.pipelines.runs import RunWithTasks, Task
from clew.errors import UsageError
from clew.prov.queries.repeat_results import store_repeat

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

_VERDICTS: tuple[Verdict, ...] = ("identical", "equivalent", "different")


def diff(one: RunWithTasks, other: RunWithTasks) -> RunDiff:
    """How two runs differ: parameters, outputs, and each task that differs. `divergence`: the first
    task with the same inputs and other outputs."""
    mine = {task.name: task for task in one.tasks}
    theirs = {task.name: task for task in other.tasks}
    tasks = []
    divergence = None
    for name in [*mine, *(name for name in theirs if name not in mine)]:
        difference = _diff_task(name, mine.get(name), theirs.get(name))
        if difference is None:
            continue
        tasks.append(difference)
        if divergence is None and difference.given == "same" and difference.made:
            divergence = name
    return RunDiff(
        a=one.id,
        b=other.id,
        inputs=_changes(one.inputs, other.inputs),
        outputs=_changes(one.outputs, other.outputs),
        tasks=tuple(tasks),
        divergence=divergence,
    )


def _diff_task(name: str, a: Task | None, b: Task | None) -> TaskDiff | None:
    """How a task of two runs differs; None if it does not."""
    if a is None or b is None:
        states = (a.state if a else None, b.state if b else None)
        return TaskDiff(name=name, state=states, given=None, made={})
    ends = [("succeeded" if task.state == "reused" else task.state) for task in (a, b)]
    made = _changes({**a.outputs, **_digests(a)}, {**b.outputs, **_digests(b)})
    if ends[0] == ends[1] and not made and a.parts == b.parts:
        return None
    return TaskDiff(
        name=name,
        state=(a.state, b.state),
        given="same" if a.parts == b.parts else "different",
        parameters=_changes(a.parameters, b.parameters),
        made=made,
    )


def _digests(task: Task) -> dict[str, Any]:
    """The digests of its artifacts; the metadata of those without a file."""
    return {
        name: [artifact.digest or artifact.metadata for artifact in artifacts]
        for name, artifacts in task.artifacts.items()
    }


def _changes(a: dict[str, Any], b: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {n: (a.get(n), b.get(n)) for n in {**a, **b} if a.get(n) != b.get(n)}


def repeat(
    project: ProjectState,
    run: RunWithTasks,
    *,
    say: Callable[[str], None],
    uid_of: Callable[[TaskId], Uid | None] = lambda _: None,
) -> RepeatedRun:
    """Repeat every task of a run in isolation, and compare the outputs. The verdict is the worst of
    all tasks. `uid_of`: the uid of the new execution of a task; if it is recorded already, the task
    is not repeated again."""
    tasks = [(task.id, task.execution) for task in run.tasks if task.execution]
    if not tasks:
        raise UsageError(f"no task of {run.id} has run", hint=f"clew pipeline show {run.id}")
    began = time.time_ns()
    results = []
    for task, execution in tasks:
        repeated = repeat_execution(
            project,
            execution,
            parameters={},
            network=False,
            gpu=False,
            incremental=False,
            keep=None,
            quiet=True,
            say=say,
            uid=uid_of(task),
        )
        say(f"{task}: {repeated.verdict}")
        results.append(RepeatedTask(**structs.asdict(repeated), task=task))
    verdict = max((result.verdict for result in results), key=_VERDICTS.index)
    document = RepeatedRun(of=run.id, verdict=verdict, tasks=tuple(results))
    if uid_of(tasks[0][0]) is None and run.id is not None:  # a server stores its own
        store_repeat(
            project.graph,
            Uid(uuid.uuid4().hex),
            target=run.id,
            target_uid=run.uid,
            options=RepeatOptions(),
            began=began,
            result=document.as_json(),
        )
    return document

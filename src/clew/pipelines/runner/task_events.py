"""The events that record a run and its tasks, beside those of the tasks' executions.

The execution of a task records what it read and wrote. The task's own events add what only the
pipeline knows: its parameters, which file is which artifact, and how it ended.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from clew.documents.ids import ExecutionId, Uid
from clew.pipelines.engine.run_state import Node
from clew.pipelines.runner.task_reuse import Verdict
from clew.pipelines.spec.values import Artifact, Values
from clew.pipelines.tasks.attempt import Attempt
from clew.prov.event_numbers import TASK_PARAMETERS
from clew.prov.events import AnyEvent, Ended, Informed, Started
from clew.prov.graph import Graph
from clew.prov.queries.pipelines.finished_tasks import (
    TASK_PROGRAM,
    FinishedTask,
    find_first_process,
)
from clew.witness import environment

UNNUMBERED = 0
"""The number of an event until it is written."""


class TaskEnd(Struct, frozen=True, eq=False):
    """A task that has ended, and is to be recorded."""

    node: Node
    attempts: Sequence[Attempt] = ()
    why: str | None = None
    verdict: Verdict | None = None
    directory: str | None = None
    """The directory of its last attempt."""
    on_recorded: Callable[[ExecutionId | None], None] = lambda _: None
    """Called with the id of its execution."""
    live_log: Path | None = None
    """The file with its output, which is removed when the task is recorded."""
    seconds: float | None = None
    """How long it ran, since the run started or was resumed."""
    at: int = field(default_factory=time.time_ns)

    @property
    def reused(self) -> FinishedTask | None:
        return self.verdict.reused if self.verdict else None

    @property
    def execution(self) -> Uid | None:
        """The uid of the execution of its last attempt that had one."""
        return next((a.execution for a in reversed(self.attempts) if a.execution), None)


def task_activity(run: Uid, node: Node) -> Uid:
    return Uid(f"{run}/{node.path}")


def run_started(
    run: Uid, *, name: str, inputs: Values, tasks: Iterable[str], **more: Any
) -> Started:
    """`more`: what a later resume needs."""
    facets = {"pipeline": name, "inputs": inputs.parameters, "tasks": list(tasks), **more}
    return Started(
        execution=run,
        n=UNNUMBERED,
        at=time.time_ns(),
        activity=run,
        kind="run",
        agent=environment.find_user_name(os.getuid()),
        facets=facets,
    )


def run_ended(run: Uid, *, state: str, outputs: Values, error: str | None) -> Ended:
    values = {**outputs.parameters, **_references(outputs.artifacts)}
    return Ended(
        execution=run,
        n=UNNUMBERED,
        at=time.time_ns(),
        activity=run,
        status=0 if state == "succeeded" else 1,
        facets={"state": state, "outputs": values, "error": error},
    )


def task_started(run: Uid, node: Node, verdict: Verdict | None) -> Started:
    """A task that runs is recorded with its key, so that later runs find and reuse it."""
    facets: dict[str, Any] = {
        "parameters": node.inputs.parameters,
        "artifacts": _references(node.inputs.artifacts),
        "platform": dict(node.component.platform.pod),
    }
    key = verdict.key if verdict and not verdict.reused else None
    if key:
        facets["begun"] = {}
    return Started(
        execution=run,
        n=UNNUMBERED,
        at=time.time_ns(),
        activity=task_activity(run, node),
        kind="task",
        parent=run,
        name=node.path,
        exe=TASK_PROGRAM if key else None,
        command=(key,) if key else (),
        cwd="" if key else None,
        facets=facets,
    )


def task_ended(run: Uid, end: TaskEnd, n: int, *, resumed: bool) -> Ended:
    """`resumed`: its start may have been recorded before the run was resumed."""
    node, verdict, reused = end.node, end.verdict, end.reused
    made = node.outputs.artifacts
    notes = [end.why, *(attempt.note for attempt in end.attempts)]
    facets = {
        "state": "reused" if reused else node.state,
        "outputs": node.outputs.parameters,
        "artifacts": reused.artifacts
        if reused
        else {name: [_description(a) for a in artifacts] for name, artifacts in made.items()},
        "executions": [reused.execution]
        if reused
        else [attempt.execution for attempt in end.attempts if attempt.execution],
        "why": "; ".join(filter(None, notes)) or None,
        "error": node.error,
        "place": end.directory,
        "inputs": _references(node.inputs.artifacts),
        "reused_from": reused.task if reused else None,
        **(end.attempts[-1].facets if end.attempts else {}),
        **({"key": verdict.key, "parts": verdict.parts} if verdict else {}),
        **({"seconds": end.seconds} if resumed and end.seconds is not None else {}),
    }
    activity = task_activity(run, node)
    return Ended(execution=run, n=n, at=end.at, activity=activity, facets=facets)


def task_informed(graph: Graph, end: TaskEnd, events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """From which tasks a task got parameters, as links between their first processes.

    `events`: those of its attempts. A reused task adds no links: its execution has them.
    """
    execution = end.reused.execution if end.reused else end.execution
    if execution is None:
        return []
    started = (e for e in events if isinstance(e, Started) and e.execution == execution)
    first = next((event.activity for event in started if event.number == 1), None)
    process = first or find_first_process(graph, execution)
    if process is None:
        return []
    end.node.process = process
    if end.reused:
        return []
    return [
        Informed(
            execution=execution,
            n=TASK_PARAMETERS,
            at=end.at,
            activity=process,
            by=source,
            via="parameter",
        )
        for source in sorted({node.process for node in end.node.producers if node.process})
    ]


def _references(artifacts: dict[str, list[Artifact]]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [{"uri": one["uri"], "type": one["type"]["schemaTitle"]} for one in several]
        for name, several in artifacts.items()
    }


def _description(artifact: Artifact) -> dict[str, Any]:
    """An artifact; `pending_events.complete_artifacts` adds the digest and size of its file."""
    path = artifact.get("custom_path")
    return {
        "name": artifact["name"],
        "uri": artifact["uri"],
        **({"custom_path": path} if path else {}),
        "type": artifact["type"]["schemaTitle"],
        "metadata": artifact.get("metadata") or {},
    }

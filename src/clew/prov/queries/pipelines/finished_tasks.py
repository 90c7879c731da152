"""Finished tasks, for reuse by later runs and for resuming a run."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.documents.ids import TaskId, Uid
from clew.prov.graph import Graph
from clew.prov.queries.formats import run_id
from clew.prov.row_keys import activity_key, command_name, key_function

TASK_PROGRAM = "task"
"""Tasks are found by their keys like programs by their commands; this is the program."""

_MAX_CANDIDATES = 24
"""How many earlier tasks of the same key are tried for reuse."""
_WITH_KEY = """
SELECT s.id FROM started s JOIN run r ON r.id = s.execution
WHERE s.words = ? AND r.project = ? AND r.uid <> ? ORDER BY s.at DESC LIMIT ?
"""
_TASKS = """
SELECT r.number, s.name, e.facets
FROM started s JOIN run r ON r.id = s.execution JOIN ended e ON e.activity = s.id
"""
_TASK = _TASKS + "WHERE s.id = ? ORDER BY e.n DESC"
_IN_RUN = _TASKS + "WHERE s.execution = ? ORDER BY e.n"
_RUNS = """
SELECT r.uid, s.facets FROM run r JOIN started s ON s.id = r.id
WHERE r.project = ? ORDER BY r.number DESC LIMIT 50
"""
_FIRST_PROCESS = "SELECT uid FROM started WHERE execution = ? AND number = 1 AND id <> execution"
_EVENTS = """(
    SELECT n, at FROM started WHERE execution = ? UNION ALL
    SELECT e.n, e.at FROM ended e JOIN started s ON s.id = e.activity WHERE s.execution = ?
) AS events"""
_LAST_NUMBER = f"SELECT max(n) FROM {_EVENTS}"  # noqa: S608
_DURATION = f"SELECT max(at) - min(at) FROM {_EVENTS}"  # noqa: S608


@dataclass(frozen=True)
class FinishedTask:
    """A task that succeeded or was reused."""

    task: TaskId
    """Its id: r1/train."""
    execution: Uid
    """The uid of its last execution."""
    directory: str
    """With the files of its inputs and outputs."""
    inputs: tuple[str, ...]
    """The paths of its declared inputs."""
    outputs: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    parts: dict[str, Any] = field(default_factory=dict)
    """The values that its key is a hash of."""
    image_digests: tuple[str, ...] = ()
    """The digests of the image that it ran in, of its manifest and of its configuration; empty if
    it ran in none."""
    pod: str | None = None
    node: str | None = None
    """Of its Pod, if it ran as one."""


def find_tasks_with_key(graph: Graph, key: str, *, run: Uid) -> Iterator[FinishedTask]:
    """Tasks of the same key that succeeded in runs other than `run`, the latest first.

    Equal tasks within a run are not reused: the user may want each of them, and the order of their
    ends is random.
    """
    words = key_function(graph.project_uid, "words")(command_name(TASK_PROGRAM, (key,), ""))
    found = graph.connection.rows(_WITH_KEY, (words, graph.project, run, _MAX_CANDIDATES))
    for (activity,) in found:
        for row in graph.connection.rows(_TASK, (activity,))[:1]:
            if (done := _build_finished_task(*row)) is not None and done.key == key:
                yield done


def list_runs_of_pipeline(graph: Graph, pipeline: str) -> list[Uid]:
    """The uids of the last runs of a pipeline of this name, the latest first."""
    rows = graph.connection.rows(_RUNS, (graph.project,))
    return [Uid(uid) for uid, facets in rows if json.loads(facets).get("pipeline") == pipeline]


def find_last_task(graph: Graph, runs: Sequence[Uid], name: str) -> FinishedTask | None:
    """The task of this name in the first of these runs in which it succeeded."""
    for uid in runs:
        activity = activity_key(graph.project_uid, Uid(f"{uid}/{name}"))
        for row in graph.connection.rows(_TASK, (activity,))[:1]:
            if (done := _build_finished_task(*row)) is not None:
                return done
    return None


def list_finished_tasks(graph: Graph, run: int) -> dict[str, FinishedTask]:
    """By name, the tasks of a run that need not run again when it is resumed."""
    found: dict[str, FinishedTask | None] = {}
    for number, name, ended in graph.connection.rows(_IN_RUN, (run,)):
        if name is not None:
            found[name] = _build_finished_task(number, name, ended, states=("succeeded", "reused"))
    return {name: done for name, done in found.items() if done is not None}


def count_attempts(graph: Graph, run: int) -> dict[str, int]:
    """By name, how many attempts of a task of this run are recorded."""
    counts: dict[str, int] = {}
    for _, name, ended in graph.connection.rows(_IN_RUN, (run,)):
        last = json.loads(ended)
        if name is not None and last.get("state") != "reused":
            counts[name] = counts.get(name, 0) + len(last.get("executions") or ())
    return counts


def load_run_facets(graph: Graph, run: int) -> dict[str, Any]:
    """The facets that a run started with: the values of its placeholders, and its options."""
    row = graph.connection.row("SELECT facets FROM started WHERE id = ?", (run,))
    return dict(json.loads(row[0])) if row else {}


def find_first_process(graph: Graph, execution: Uid) -> Uid | None:
    """The uid of the first process of an execution."""
    key = activity_key(graph.project_uid, execution)
    row = graph.connection.row(_FIRST_PROCESS, (key,))
    return Uid(row[0]) if row else None


def find_last_event_number(graph: Graph, run: int) -> int:
    """The number of the last event of a run."""
    return int(graph.connection.rows(_LAST_NUMBER, (run, run))[0][0] or 0)


def find_recorded_seconds(graph: Graph, run: int) -> float:
    """The seconds between the first and the last event of a run."""
    return (graph.connection.rows(_DURATION, (run, run))[0][0] or 0) / 1e9


def _build_finished_task(
    number: int, name: str, ended: str, *, states: Sequence[str] = ("succeeded",)
) -> FinishedTask | None:
    last = json.loads(ended)
    if last.get("state") not in states or not last.get("executions"):
        return None
    inputs = last.get("inputs", {}).values()
    return FinishedTask(
        task=TaskId(f"{run_id(number)}/{name}"),
        execution=last["executions"][-1],
        directory=last.get("place", ""),
        inputs=tuple(artifact["uri"] for artifacts in inputs for artifact in artifacts),
        outputs=last.get("outputs", {}),
        artifacts=last.get("artifacts", {}),
        key=last.get("key"),
        parts=last.get("parts", {}),
        image_digests=tuple(last.get("image_digests") or filter(None, [last.get("image_digest")])),
        pod=last.get("pod"),
        node=last.get("node"),
    )

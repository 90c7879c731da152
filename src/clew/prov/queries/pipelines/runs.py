"""Recorded pipeline runs, as the documents of `clew pipeline show`, and their progress."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from clew.documents.document import from_nanoseconds
from clew.documents.ids import ExecutionId, RunId, TaskId, Uid, VersionId
from clew.documents.pipelines.runs import (
    Artifact,
    Run,
    RunChange,
    RunWithCounts,
    RunWithTasks,
    Task,
    TaskState,
)
from clew.errors import NotFound
from clew.prov.graph import LATEST, Graph
from clew.prov.queries.executions import IsRunning
from clew.prov.queries.formats import execution_id, run_id
from clew.prov.row_keys import activity_key

_TASK_ID = re.compile(rf"(r[1-9]\d{{0,15}}|{LATEST})/([^:]+)(?::(.+))?", re.DOTALL)
_RUNS = "SELECT id, uid, number FROM run WHERE project = ? {}"
_BY_NUMBER = _RUNS.replace("{}", "AND number = ?")
_BY_ID = _RUNS.replace("{}", "AND id = ?")
_NEWEST = _RUNS.replace("{}", "ORDER BY number DESC LIMIT 1")
_ACTIVITIES = """
SELECT s.uid, s.at, s.name, s.facets, e.at, e.facets
FROM started s LEFT JOIN ended e ON e.activity = s.id
WHERE s.execution = ? ORDER BY s.n, e.n
"""
_RUN_ACTIVITY = _ACTIVITIES.replace("s.execution", "s.id")
_TASKS = "SELECT id FROM started WHERE execution = ? AND kind = 'task' ORDER BY n"
_ENDS = "SELECT activity, facets FROM ended WHERE activity IN ({}) ORDER BY n"
_BATCH = 100
_NUMBER = "SELECT number FROM execution WHERE id = ?"


class RunRef(NamedTuple):
    """A recorded pipeline run."""

    key: int
    uid: Uid
    number: int

    @property
    def id(self) -> RunId:
        return run_id(self.number)


def find_run(graph: Graph, text: str) -> RunRef:
    """Find a run by its id (`r2`) or uid; `latest` is the newest."""
    row = None
    if text == LATEST:
        row = graph.connection.row(_NEWEST, (graph.project,))
    elif text[:1] == "r" and text[1:].isascii() and text[1:].isdigit() and len(text) < 18:
        row = graph.connection.row(_BY_NUMBER, (graph.project, int(text[1:])))
    elif len(text) == 32:
        key = activity_key(graph.project_uid, Uid(text))
        row = graph.connection.row(_BY_ID, (graph.project, key))
    if row is None:
        raise NotFound(f"no pipeline run {text}", hint="clew pipeline list")
    return RunRef(int(row[0]), Uid(row[1]), int(row[2]))


def get_run(graph: Graph, text: str, *, alive: IsRunning) -> RunWithTasks:
    """A run, by id or uid, with its tasks."""
    return _RunBuilder(graph, find_run(graph, text), alive, tasks=True).with_tasks()


def get_run_summary(graph: Graph, text: str, *, alive: IsRunning) -> Run:
    """A run, by id or uid, without its tasks."""
    return Run(**_RunBuilder(graph, find_run(graph, text), alive, tasks=False).fields())


def get_run_with_counts(graph: Graph, text: str, *, alive: IsRunning) -> RunWithCounts:
    """A run with the number of its tasks in each state, in place of the tasks: these may need much
    memory."""
    run = find_run(graph, text)
    unended = "running" if alive(run.uid) else "failed"
    counts: dict[str, int] = {}
    tasks = [row[0] for row in graph.connection.rows(_TASKS, (run.key,))]
    for start in range(0, len(tasks), _BATCH):
        states = dict.fromkeys(tasks[start : start + _BATCH], unended)
        for activity, facets in graph.connection.rows_in(_ENDS, states):
            states[activity] = json.loads(facets)["state"]  # the last end counts
        for state in states.values():
            counts[state] = counts.get(state, 0) + 1
    return RunWithCounts(**_RunBuilder(graph, run, alive, tasks=False).fields(), counts=counts)


def get_task(graph: Graph, text: str, *, alive: IsRunning) -> Task:
    """A task by its id, `r1/train` or `r1/for-loop-1/0/train`, or by the last part of its name.
    `latest/train` is that of the newest run."""
    parsed = _TASK_ID.fullmatch(text)
    if parsed is None:
        raise NotFound(
            f"{text} is not the id of a task: RUN/TASK", hint="clew pipeline show RUN lists tasks"
        )
    run, name = parsed[1], parsed[2]
    tasks = get_run(graph, run, alive=alive).tasks
    matches = [task for task in tasks if task.name == name]
    matches = matches or [task for task in tasks if task.name.rsplit("/", 1)[-1] == name]
    if len(matches) != 1:
        several = ", ".join(task.id for task in matches[:3])
        raise NotFound(
            f"{run} has several tasks {name}: {several}"
            if matches
            else f"{run} has no task {name}",
            hint=f"clew pipeline show {run}",
        )
    return matches[0]


def list_run_executions(graph: Graph, text: str) -> list[ExecutionId]:
    """The executions of all tasks of a run; none if `text` does not name a run."""
    try:
        run = get_run(graph, text, alive=lambda _: False)
    except NotFound:
        return []
    return [task.execution for task in run.tasks if task.execution]


def resolve_task(graph: Graph, text: str) -> ExecutionId | VersionId | None:
    """The id of the execution of a task (`r1/train`), or of the version of an artifact
    (`r1/train:model`); None if `text` is neither."""
    parsed = _TASK_ID.fullmatch(text)
    if parsed is None:
        return None
    try:
        hint = f"clew pipeline show {find_run(graph, parsed[1]).id}"
    except NotFound:
        return None
    try:
        task = get_task(graph, text, alive=lambda _: False)
    except NotFound:
        if parsed[1] == LATEST:  # perhaps a path: many programs write to a directory `latest`
            return None
        raise
    if parsed[3] is None:
        if not task.execution:
            raise NotFound(f"{text} was never run", hint=hint)
        return task.execution
    artifacts = task.artifacts.get(parsed[3])
    if not artifacts:
        raise NotFound(f"{task.id} made no artifact {parsed[3]}", hint=hint)
    if not artifacts[0].version:
        raise NotFound(
            f"the artifact {text} is not a single file that was recorded",
            hint=f"clew show {task.execution} --detail",
        )
    return artifacts[0].version


class _RunBuilder:
    """Builds the document of a run from its activities."""

    def __init__(self, graph: Graph, run: RunRef, alive: IsRunning, *, tasks: bool) -> None:
        self._graph = graph
        self._run = run
        self._activities: dict[str, list[Any]] = {}
        rows = graph.connection.rows(_ACTIVITIES if tasks else _RUN_ACTIVITY, (run.key,))
        for uid, at, name, facets, ended, end in rows:
            # A second end replaces the first: the run was resumed.
            self._activities[uid] = [name, at, json.loads(facets), ended, json.loads(end or "{}")]
        _, self._started, self._facets, self._ended, self._end = self._activities.pop(
            run.uid, [None, None, {}, None, {}]
        )
        self._running = alive(run.uid)
        if self._running:  # perhaps it was resumed after its end
            self._ended, self._end = None, {}

    def fields(self) -> dict[str, Any]:
        facets, end = self._facets, self._end
        killed = self._ended is None and not self._running
        return {
            "id": self._run.id,
            "uid": self._run.uid,
            "name": facets.get("pipeline"),
            "state": end.get("state") or ("running" if self._running else "failed"),
            "started": _time(self._started),
            "ended": _time(self._ended),
            "seconds": _seconds(self._started, self._ended, end),
            "file": facets.get("file"),
            "inputs": facets.get("inputs", {}),
            "outputs": end.get("outputs", {}),
            "error": "it was killed before its end" if killed else end.get("error"),
        }

    def with_tasks(self) -> RunWithTasks:
        unended: TaskState = "running" if self._running else "failed"
        known = [self._build_task(unended, *values) for values in self._activities.values()]
        names = {task.name.split("/")[0] for task in known}
        pending = [n for n in self._facets.get("tasks", ()) if self._running and n not in names]
        known += [self._build_task("pending", name) for name in pending]
        return RunWithTasks(**self.fields(), tasks=tuple(known))

    def _build_task(
        self,
        unended: TaskState,
        name: str,
        started: int | None = None,
        facets: Mapping[str, Any] = MappingProxyType({}),
        ended: int | None = None,
        end: Mapping[str, Any] = MappingProxyType({}),
    ) -> Task:
        """`unended`: its state if it has not ended. `facets`, `end`: those of its start and end."""
        graph = self._graph
        executions = tuple(
            execution_id(int(row[0]))
            for uid in end.get("executions", ())
            if (row := graph.connection.row(_NUMBER, (activity_key(graph.project_uid, uid),)))
        )
        killed = ended is None and unended == "failed"
        return Task(
            id=TaskId(f"{self._run.id}/{name}"),
            name=name,
            state=end.get("state") or unended,
            started=_time(started),
            ended=_time(ended),
            seconds=_seconds(started, ended, end),
            parameters=facets.get("parameters", {}),
            platform=facets.get("platform", {}),
            outputs=end.get("outputs", {}),
            artifacts=_parse_artifacts(end.get("artifacts", {})),
            reused_from=end.get("reused_from"),
            why=end.get("why"),
            error=end.get("error") or ("the run was killed" if killed else None),
            execution=executions[-1] if executions else None,
            attempts=executions,
            key=end.get("key"),
            parts=end.get("parts", {}),
            pod=end.get("pod"),
            node=end.get("node"),
            image_digest=end.get("image_digest"),
            placement=end.get("placement"),
        )


def _parse_artifacts(facet: object) -> dict[str, tuple[Artifact, ...]]:
    """The artifacts of a task; none if a forged record has something else there."""
    try:
        return msgspec.convert(facet, dict[str, tuple[Artifact, ...]])
    except msgspec.ValidationError:
        return {}


def _time(at: int | None) -> datetime | None:
    return None if at is None else from_nanoseconds(at)


def _seconds(started: int | None, ended: int | None, end: Mapping[str, Any]) -> float | None:
    """How long it ran; the recorder states that for a run that was resumed."""
    if started is None or ended is None:
        return None
    return round(end.get("seconds") or (ended - started) / 1e9, 6)


_SINCE = """
SELECT e.n, e.at, e.change, e.facets, s.kind, s.name FROM (
  SELECT id, n, at, 'started' AS change, facets FROM started WHERE execution = ?
  UNION ALL
  SELECT s.id, e.n, e.at, 'ended', e.facets FROM ended e JOIN started s ON s.id = e.activity
  WHERE s.execution = ?
) AS e JOIN started s ON s.id = e.id WHERE e.n > ? ORDER BY e.n
"""


def list_changes(graph: Graph, run: RunRef, *, since: int = 0) -> list[RunChange]:
    """The changes after number `since`, in order."""
    rows = graph.connection.rows(_SINCE, (run.key, run.key, since))
    return [_build_change(run, *row) for row in rows]


def _build_change(
    run: RunRef,
    n: int,
    at: int,
    change: Literal["started", "ended"],
    facets: str,
    kind: str,
    name: str | None,
) -> RunChange:
    end = json.loads(facets) if change == "ended" else {}
    return RunChange(
        n=int(n),
        at=from_nanoseconds(at),
        run=run.id,
        kind=kind,
        task=TaskId(f"{run.id}/{name}") if kind == "task" else None,
        name=name,
        change=change,
        state=end.get("state", "running"),
        reused_from=end.get("reused_from"),
        why=end.get("why"),
        error=end.get("error"),
    )

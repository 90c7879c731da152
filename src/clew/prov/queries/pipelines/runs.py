"""Pipeline runs and their tasks, as the graph knows them: the contract's `pipeline show`."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from clew.errors import NotFound
from clew.prov.graph import Graph
from clew.prov.queries.executions import IsRunning
from clew.prov.queries.formats import execution_id, format_time, run_id
from clew.prov.row_keys import activity_key

_NAMED = re.compile(r"(r[1-9]\d{0,15})/([^:]+)(?::(.+))?", re.DOTALL)
_RUNS = "SELECT id, uid, number FROM run WHERE project = ? {}"
_ALL = _RUNS.replace("{}", "ORDER BY number")
_BY_NUMBER = _RUNS.replace("{}", "AND number = ?")
_BY_ID = _RUNS.replace("{}", "AND id = ?")
_ACTIVITIES = """
SELECT s.uid, s.at, s.name, s.facets, e.at, e.facets
FROM started s LEFT JOIN ended e ON e.activity = s.id
WHERE s.execution = ? ORDER BY s.n, e.n
"""
_ITSELF = _ACTIVITIES.replace("s.execution", "s.id")
_TASKS = "SELECT id FROM started WHERE execution = ? AND kind = 'task' ORDER BY n"
_ENDS = "SELECT activity, facets FROM ended WHERE activity IN ({}) ORDER BY n"
_BATCH = 100
_NUMBER = "SELECT number FROM execution WHERE id = ?"


class RunRef(NamedTuple):
    """A recorded pipeline run."""

    key: int
    uid: str
    number: int

    @property
    def id(self) -> str:
        return run_id(self.number)


def find_run(graph: Graph, text: str) -> RunRef:
    """Find a run by its id (`r2`) or uid."""
    row = None
    if text[:1] == "r" and text[1:].isascii() and text[1:].isdigit() and len(text) < 18:
        row = graph.connection.one(_BY_NUMBER, (graph.project, int(text[1:])))
    elif len(text) == 32:
        row = graph.connection.one(_BY_ID, (graph.project, activity_key(graph.project_uid, text)))
    if row is None:
        raise NotFound(f"no pipeline run {text}", hint="clew pipeline list")
    return RunRef(int(row[0]), str(row[1]), int(row[2]))


def list_runs(graph: Graph, *, alive: IsRunning) -> list[dict[str, Any]]:
    """All runs, oldest first, each without its tasks."""
    found = [
        RunRef(int(key), str(uid), int(number))
        for key, uid, number in graph.connection.rows(_ALL, (graph.project,))
    ]
    return [_build_run(graph, one, alive, tasks=False) for one in found]


def get_run(graph: Graph, text: str, *, alive: IsRunning, tasks: bool = True) -> dict[str, Any]:
    """One run with its tasks."""
    return _build_run(graph, find_run(graph, text), alive, tasks=tasks)


def get_run_with_counts(graph: Graph, text: str, *, alive: IsRunning) -> dict[str, Any]:
    """One run, and how many of its tasks there are in each state: in place of the tasks, which may
    be more than one wants in memory."""
    found = find_run(graph, text)
    unended = "running" if alive(found.uid) else "failed"
    counts: dict[str, int] = {}
    tasks = [row[0] for row in graph.connection.rows(_TASKS, (found.key,))]
    for start in range(0, len(tasks), _BATCH):
        states = dict.fromkeys(tasks[start : start + _BATCH], unended)
        for activity, facets in graph.connection.among(_ENDS, states):
            states[activity] = json.loads(facets)["state"]  # the last end is the one that counts
        for state in states.values():
            counts[state] = counts.get(state, 0) + 1
    return {**_build_run(graph, found, alive, tasks=False), "counts": counts}


def get_task(graph: Graph, text: str, *, alive: IsRunning) -> dict[str, Any]:
    """One task: `r1/train`, or within something `r1/for-loop-1/0/train`."""
    named = _NAMED.fullmatch(text)
    if named is None:
        raise NotFound(f"{text} names no task", hint="clew pipeline show r1 lists those of a run")
    found = get_run(graph, named[1], alive=alive)["tasks"]
    exact = [one for one in found if one["name"] == named[2]]
    alike = exact or [one for one in found if one["name"].rsplit("/", 1)[-1] == named[2]]
    if len(alike) != 1:
        several = ", ".join(one["id"] for one in alike[:3])
        raise NotFound(
            f"{named[1]} has several tasks {named[2]}: {several}"
            if alike
            else f"{named[1]} has no task {named[2]}",
            hint=f"clew pipeline show {named[1]}",
        )
    return dict(alike[0])


def list_run_executions(graph: Graph, text: str) -> list[str]:
    """The executions of all tasks of the run that `text` names; none where it names none."""
    try:
        found = get_run(graph, text, alive=lambda _: False)
    except NotFound:
        return []
    return [one["execution"] for one in found["tasks"] if one["execution"]]


def resolve_task(graph: Graph, text: str) -> str | None:
    """The execution of a task (`r1/train`), or the version of an artifact (`r1/train:model`),
    in words that name it anywhere; None where the text speaks of neither."""
    named = _NAMED.fullmatch(text)
    if named is None or not graph.connection.one(_BY_NUMBER, (graph.project, int(named[1][1:]))):
        return None
    found = get_task(graph, text, alive=lambda _: False)
    if named[3] is None:
        if not found["execution"]:
            raise NotFound(f"{text} was never run", hint=f"clew pipeline show {named[1]}")
        return str(found["execution"])
    made = found["artifacts"].get(named[3])
    if not made:
        raise NotFound(
            f"{found['id']} made no artifact {named[3]}", hint=f"clew pipeline show {named[1]}"
        )
    if not made[0]["version"]:
        raise NotFound(
            f"the artifact {text} is no single file that was recorded",
            hint=f"clew show {found['execution']} --detail",
        )
    return str(made[0]["version"])


def _build_run(graph: Graph, found: RunRef, alive: IsRunning, *, tasks: bool) -> dict[str, Any]:
    known: dict[str, list[Any]] = {}
    told = graph.connection.rows(_ACTIVITIES if tasks else _ITSELF, (found.key,))
    for uid, at, name, facets, ended, more in told:
        # A second end replaces the first: what was tried again.
        known[uid] = [at, name, json.loads(facets), ended, json.loads(more or "{}")]
    started, _, facets, ended, more = known.pop(found.uid, [None, None, {}, None, {}])
    going = alive(found.uid)
    if going:  # perhaps again: it was resumed after its end
        ended, more = None, {}
    state = more.get("state") or ("running" if going else "failed")
    error = more.get("error")
    if ended is None and not going:
        error = "it was killed before its end"
    document = {
        "id": found.id,
        "uid": found.uid,
        "name": facets.get("pipeline"),
        "state": state,
        "started": format_time(started),
        "ended": format_time(ended),
        "seconds": _seconds(started, ended, more),
        "file": facets.get("file"),
        "inputs": facets.get("inputs", {}),
        "outputs": more.get("outputs", {}),
        "error": error,
    }
    if tasks:
        done = [_build_task(graph, found.id, words, going) for words in known.values()]
        names = {one["name"].split("/")[0] for one in done}
        waiting = [name for name in facets.get("tasks", ()) if going and name not in names]
        document["tasks"] = [*done, *(_build_pending_task(found.id, name) for name in waiting)]
    return document


def _build_task(graph: Graph, run_id: str, words: list[Any], going: bool) -> dict[str, Any]:
    at, name, facets, ended, more = words
    executions = [
        execution_id(int(row[0]))
        for uid in more.get("executions", ())
        if (row := graph.connection.one(_NUMBER, (activity_key(graph.project_uid, uid),)))
    ]
    return {
        **_build_pending_task(run_id, name),
        "state": more.get("state") or ("running" if going else "failed"),
        "started": format_time(at),
        "ended": format_time(ended),
        "seconds": _seconds(at, ended, more),
        "parameters": facets.get("parameters", {}),
        "platform": facets.get("platform", {}),
        "outputs": more.get("outputs", {}),
        "artifacts": more.get("artifacts", {}),
        "reused_from": more.get("reused_from"),
        "why": more.get("why"),
        "error": more.get("error") or (None if ended or going else "the run was killed"),
        "execution": executions[-1] if executions else None,
        "attempts": executions,
        "key": more.get("key"),
        "parts": more.get("parts", {}),
    }


def _seconds(started: int, ended: int | None, facets: dict[str, Any]) -> float | None:
    """How long it ran; the recorder states that for a run that was resumed."""
    if ended is None:
        return None
    return round(facets.get("seconds") or (ended - started) / 1e9, 6)


def _build_pending_task(run_id: str, name: str) -> dict[str, Any]:
    return {
        "id": f"{run_id}/{name}",
        "name": name,
        "state": "pending",
        "started": None,
        "ended": None,
        "seconds": None,
        "parameters": {},
        "platform": {},
        "outputs": {},
        "artifacts": {},
        "reused_from": None,
        "why": None,
        "error": None,
        "execution": None,
        "attempts": [],
        "key": None,
        "parts": {},
    }

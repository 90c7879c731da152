"""List executions, and find one by id, name or uid.

The last event of an execution has its totals, so a list costs one query; only the totals of broken
and running executions are counted from their rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from clew.documents.ids import ExecutionId, Uid
from clew.errors import NotFound
from clew.prov.graph import Graph
from clew.prov.queries.formats import execution_id, format_time
from clew.prov.row_keys import activity_key

IsRunning = Callable[[str], bool]
"""Whether the execution with this uid is running. A file lock decides, not the graph."""

_LINES = """
SELECT x.id, x.uid, x.number, x.name, x.begun, x.made_elsewhere, s.at, s.command, s.cwd,
       s.agent, s.parent, s.mode, s.collection, e.at, e.status, e.signal,
       e.processes, e.inputs, e.outputs, e.bytes, e.new_bytes
FROM execution x LEFT JOIN started s ON s.id = x.id LEFT JOIN ended e ON e.activity = x.id
WHERE x.project = ? {} ORDER BY x.number, e.n
"""
_ALL = _LINES.replace("{}", "")
_ONE = _LINES.replace("{}", "AND x.id = ?")
_PAGE = _LINES.replace(
    "{}",
    "AND x.id IN (SELECT id FROM execution WHERE project = ? AND number < ?"
    " ORDER BY number DESC LIMIT ?)",
)
_FAMILY = """
SELECT x.id, x.uid, x.number, s.parent FROM execution x LEFT JOIN started s ON s.id = x.id
WHERE x.project = ?
"""
_FIND = "SELECT id, uid, number, made_elsewhere FROM execution WHERE project = ? AND "
_BY_NUMBER = _FIND + "number = ?"
_BY_NAME = _FIND + "name = ?"
_BY_ID = _FIND + "id = ?"
_SIGNED = """
SELECT g.execution, g.key FROM signature g JOIN execution x ON x.id = g.execution
WHERE x.project = ? ORDER BY g.key
"""
_NAMES = "SELECT name FROM execution WHERE project = ? AND name IS NOT NULL"


class ExecutionRef(NamedTuple):
    """An execution that is there."""

    key: int
    uid: Uid
    number: int
    made_elsewhere: bool = False
    """It was pulled or sent here, or repeats one that was: its record is untrusted."""

    @property
    def id(self) -> ExecutionId:
        return execution_id(self.number)


def find_execution(graph: Graph, text: str) -> ExecutionRef:
    """The execution a user calls `e2`, by its name, by its uid, or as a task: `r1/train`."""
    row = None
    if text[:1] == "e" and text[1:].isascii() and text[1:].isdigit() and len(text) < 18:
        row = graph.connection.row(_BY_NUMBER, (graph.project, int(text[1:])))
    if row is None and len(text) == 32:  # before names: an imported name may read as a uid
        key = activity_key(graph.project_uid, text)
        row = graph.connection.row(_BY_ID, (graph.project, key))
    if row is None and _is_text(text):
        row = graph.connection.row(_BY_NAME, (graph.project, text))
    if row is None and text[:1] == "r" and "/" in text:
        from clew.prov.queries.pipelines.runs import resolve_task

        if known := resolve_task(graph, text):
            return find_execution(graph, known)
    if row is None:
        raise NotFound(f"no execution {text}", hint=_suggest_name(graph, text))
    return ExecutionRef(int(row[0]), Uid(row[1]), int(row[2]), bool(row[3]) or graph.foreign)


def _is_text(text: str) -> bool:
    """A path that is typed may be none; no name is like that."""
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def list_executions(graph: Graph, *, alive: IsRunning) -> list[dict[str, Any]]:
    """All executions, oldest first."""
    return _build_documents(graph, graph.connection.rows(_ALL, (graph.project,)), alive)


def list_executions_before(
    graph: Graph, *, before: int, limit: int, alive: IsRunning
) -> list[dict[str, Any]]:
    """At most `limit` executions with numbers below `before`, the newest first."""
    rows = graph.connection.rows(_PAGE, (graph.project, graph.project, before, limit))
    return _build_documents(graph, rows, alive)[::-1]


def get_execution(graph: Graph, text: str, *, alive: IsRunning) -> dict[str, Any]:
    """One execution's line, by id, name or uid."""
    found = find_execution(graph, text)
    return _build_documents(graph, graph.connection.rows(_ONE, (graph.project, found.key)), alive)[
        0
    ]


def _suggest_name(graph: Graph, text: str) -> str:
    names = [str(name) for (name,) in graph.connection.rows(_NAMES, (graph.project,))]
    from difflib import get_close_matches

    close = get_close_matches(text, names, n=1)
    return f"did you mean {close[0]}? clew list" if close else "clew list"


def _build_documents(
    graph: Graph, rows: list[tuple[Any, ...]], alive: IsRunning
) -> list[dict[str, Any]]:
    merged: dict[int, list[Any]] = {}
    for row in rows:
        known = merged.setdefault(row[0], list(row))
        # A second `ended` adds to the first: later words win, silence changes nothing.
        known[13:] = [
            old if new is None else new for old, new in zip(known[13:], row[13:], strict=True)
        ]
    kin = _Family(graph, any(row[10] is not None or row[12] is not None for row in merged.values()))
    signers = _signers(graph) if any(row[5] for row in merged.values()) else {}
    return [_build_document(graph, row, kin, signers, alive) for row in merged.values()]


def _signers(graph: Graph) -> dict[int, str]:
    """Who signed which execution: a known signer's name, else the key."""
    found: dict[int, str] = {}
    for execution, key in graph.connection.rows(_SIGNED, (graph.project,)):
        if key in graph.signers:
            found[execution] = graph.signers[key]
        else:
            found.setdefault(execution, f"unknown key {key}")
    return found


def _build_document(
    graph: Graph, row: list[Any], kin: _Family, signers: dict[int, str], alive: IsRunning
) -> dict[str, Any]:
    (key, uid, number, name, begun, elsewhere, started, command, cwd, agent, parent, mode,
     collection, ended, status, signal, *totals) = row  # fmt: skip
    started = begun if started is None else started
    if ended is not None:
        state = "done" if status == 0 and signal is None else "failed"
    else:
        state = "running" if alive(uid) else "broken"
    if any(total is None for total in totals[:4]):
        from clew.prov.queries.files import count_totals as count

        counted = count(graph, key)
        totals = [c if t is None else t for t, c in zip(totals, (*counted, None), strict=True)]
    return {
        "id": execution_id(number),
        "uid": uid,
        "name": name,
        "command": json.loads(command) if command else [],
        "cwd": cwd,
        "agent": agent,
        "started": format_time(started),
        "ended": format_time(ended),
        "seconds": None if ended is None else round((ended - started) / 1e9, 6),
        "state": state,
        "status": status,
        "signal": signal,
        "kind": mode or "reference",
        "parent": kin.name(parent),
        "collection": kin.collection(collection, key, number),
        "made_elsewhere": bool(elsewhere) or graph.foreign,
        "signed_by": signers.get(key),
        **dict(zip(("processes", "inputs", "outputs", "bytes", "new_bytes"), totals, strict=True)),
    }


class _Family:
    """The parents of executions. Loaded only if some execution has a parent."""

    def __init__(self, graph: Graph, needed: bool) -> None:
        rows = graph.connection.rows(_FAMILY, (graph.project,)) if needed else []
        self._number = {row[0]: int(row[2]) for row in rows}
        self._by_uid = {row[1]: int(row[2]) for row in rows}
        self._parent = {row[0]: row[3] for row in rows}

    def name(self, key: int | None) -> str | None:
        number = None if key is None else self._number.get(key)
        return None if number is None else execution_id(number)

    def collection(self, given: str | None, key: int, number: int) -> str:
        """What the execution says; else the id of the one its family began with."""
        if given is not None:
            return execution_id(self._by_uid[given]) if given in self._by_uid else given
        seen = {key}
        while (parent := self._parent.get(key)) is not None:
            if parent in seen or parent not in self._number:
                break
            key = parent
            seen.add(key)
        return execution_id(self._number.get(key, number))

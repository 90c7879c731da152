"""Find an execution by id, name or uid, and build the documents of executions.

The last event of an execution has its totals, so a list costs one query; only the totals of broken
and running executions are counted from their rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from clew.documents.document import from_nanoseconds
from clew.documents.executions.execution_list import Execution, State
from clew.documents.ids import ExecutionId, TaskId, Uid
from clew.errors import NotFound, UsageError
from clew.prov.cluster.activity_uids import CLUSTER_KINDS
from clew.prov.graph import LATEST, Graph
from clew.prov.queries.formats import execution_id
from clew.prov.queries.tags import load_tags
from clew.prov.row_keys import activity_key

IsRunning = Callable[[Uid], bool]
"""Whether the execution with this uid is running. A file lock decides, not the graph."""

WORKER = "worker"
"""The label of the first process of a worker, from which the tasks of pipeline runs are forked."""
EXECUTIONS = """
SELECT x.id, x.uid, x.number, x.name, x.begun, x.made_elsewhere, p.name, s.at, s.command, s.cwd,
       s.agent, s.parent, s.mode, s.collection, e.at, e.status, e.signal,
       e.processes, e.inputs, e.outputs, e.bytes, e.new_bytes
FROM execution x LEFT JOIN started s ON s.id = x.id LEFT JOIN ended e ON e.activity = x.id
LEFT JOIN started p ON p.execution = x.id AND p.number = 1 AND p.id <> x.id
WHERE x.project = ? {} ORDER BY x.number, e.n
"""
NO_WORKER = f"""
AND NOT EXISTS (SELECT 1 FROM started w
                WHERE w.execution = x.id AND w.number = 1 AND w.name = '{WORKER}')
"""  # noqa: S608
NOT_OF_CLUSTER = " AND x.of_cluster = 0 "
"""What ran in a cluster is found by its lineage: it would drown the executions of users."""
_KIND = "SELECT kind FROM started WHERE id = ?"
_ONE = EXECUTIONS.replace("{}", "AND x.id = ?")
_END = 14
"""Index of the first column of EXECUTIONS about the end of an execution."""
TASK_LABEL = re.compile(r"(r[1-9]\d{0,15}/[^:]+?)(?:~\d+)?")
"""The label of the first process of a task. Other attempts have directories `train~2`."""
_FAMILY = """
SELECT x.id, x.uid, x.number, s.parent FROM execution x LEFT JOIN started s ON s.id = x.id
WHERE x.project = ?
"""
_FIND = "SELECT id, uid, number, made_elsewhere FROM execution WHERE project = ? AND "
_BY_NUMBER = _FIND + "number = ?"
_BY_NAME = _FIND + "name = ?"
_BY_ID = _FIND + "id = ?"
_NEWEST = f"""
SELECT x.id, x.uid, x.number, x.made_elsewhere FROM execution x
WHERE x.project = ? {NO_WORKER} {NOT_OF_CLUSTER} ORDER BY x.number DESC LIMIT 1
"""  # noqa: S608
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
    """The execution of this id (`e2`), name, uid or task (`r1/train`). `latest` is the newest that
    is not a worker of pipelines."""
    row = None
    if text == LATEST:
        row = graph.connection.row(_NEWEST, (graph.project,))
    elif text[:1] == "e" and text[1:].isascii() and text[1:].isdigit() and len(text) < 18:
        row = graph.connection.row(_BY_NUMBER, (graph.project, int(text[1:])))
    if row is None and len(text) == 32:  # before names: an imported name may read as a uid
        key = activity_key(graph.project_uid, Uid(text))
        row = graph.connection.row(_BY_ID, (graph.project, key))
    if row is None and is_text(text):
        row = graph.connection.row(_BY_NAME, (graph.project, text))
    if row is None and "/" in text:
        from clew.prov.queries.pipelines.runs import resolve_task

        if known := resolve_task(graph, text):
            return find_execution(graph, known)
    if row is None:
        raise NotFound(f"no execution {text}", hint=_suggest_name(graph, text))
    if graph.is_restricted:
        from clew.prov.queries.cluster.visibility import check_execution

        check_execution(graph, int(row[2]))
    return ExecutionRef(int(row[0]), Uid(row[1]), int(row[2]), bool(row[3]) or graph.foreign)


def check_is_command(graph: Graph, found: ExecutionRef) -> None:
    """Refuse what ran in a cluster: there is no recorded command to run again on this machine."""
    row = graph.connection.row(_KIND, (found.key,))
    if row is not None and row[0] in CLUSTER_KINDS:
        raise UsageError(
            f"{found.id} is a {row[0]} of a cluster, not a command",
            hint=f"clew reproduce {found.id} --dry-run",
        )


def is_text(text: str) -> bool:
    """A path that is typed may be none; no name is like that."""
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def list_executions(graph: Graph, *, alive: IsRunning) -> list[Execution]:
    """All executions, oldest first."""
    rows = graph.connection.rows(EXECUTIONS.replace("{}", NOT_OF_CLUSTER), (graph.project,))
    return build_documents(graph, rows, alive)


def get_execution(graph: Graph, text: str, *, alive: IsRunning) -> Execution:
    """The document of one execution, by what a user calls it."""
    found = find_execution(graph, text)
    return build_documents(graph, graph.connection.rows(_ONE, (graph.project, found.key)), alive)[0]


def _suggest_name(graph: Graph, text: str) -> str:
    names = [str(name) for (name,) in graph.connection.rows(_NAMES, (graph.project,))]
    from difflib import get_close_matches

    close = get_close_matches(text, names, n=1)
    return f"did you mean {close[0]}? clew list" if close else "clew list"


def build_documents(graph: Graph, rows: list[tuple[Any, ...]], alive: IsRunning) -> list[Execution]:
    """The documents of the executions in these rows of EXECUTIONS, in their order."""
    merged: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        known = merged.get(row[0])
        if known is None:
            merged[row[0]] = row
            continue
        # A second `ended` adds to the first: later words win, silence changes nothing.
        pairs = zip(known[_END:], row[_END:], strict=True)
        ends = (old if new is None else new for old, new in pairs)
        merged[row[0]] = (*known[:_END], *ends)
    is_derived = any(row[11] is not None or row[13] is not None for row in merged.values())
    kin = _Family(graph, is_derived)
    signers = _signers(graph) if any(row[5] for row in merged.values()) else {}
    tags = load_tags(graph, merged)
    return [
        _build_document(graph, row, kin, signers.get(key), tags.get(key, []), alive)
        for key, row in merged.items()
    ]


def _signers(graph: Graph) -> dict[int, str]:
    """The signers of executions: a known signer's name, else the key."""
    found: dict[int, str] = {}
    for execution, key in graph.connection.rows(_SIGNED, (graph.project,)):
        if key in graph.signers:
            found[execution] = graph.signers[key]
        else:
            found.setdefault(execution, f"unknown key {key}")
    return found


def _build_document(
    graph: Graph,
    row: tuple[Any, ...],
    kin: _Family,
    signer: str | None,
    tags: list[str],
    alive: IsRunning,
) -> Execution:
    (key, uid, number, name, begun, elsewhere, label, started, command, cwd, agent, parent, mode,
     collection, ended, status, signal, *totals) = row  # fmt: skip
    started = begun if started is None else started
    state: State
    if ended is not None:
        state = "done" if status == 0 and signal is None else "failed"
    else:
        state = "running" if alive(uid) else "broken"
    if any(total is None for total in totals[:4]):
        from clew.prov.queries.files import count_totals as count

        counted = count(graph, key)
        totals = [c if t is None else t for t, c in zip(totals, (*counted, None), strict=True)]
    processes, inputs, outputs, size, new_bytes = totals
    task = TASK_LABEL.fullmatch(label) if label else None
    return Execution(
        id=execution_id(number),
        uid=uid,
        name=name,
        command=tuple(json.loads(command)) if command else (),
        cwd=cwd,
        agent=agent,
        started=from_nanoseconds(started),
        ended=None if ended is None else from_nanoseconds(ended),
        seconds=None if ended is None else round((ended - started) / 1e9, 6),
        state=state,
        status=status,
        signal=signal,
        kind=mode or "reference",
        parent=kin.name(parent),
        collection=kin.collection(collection, key, number),
        made_elsewhere=bool(elsewhere) or graph.foreign,
        signed_by=signer,
        process_count=processes,
        input_count=inputs,
        output_count=outputs,
        bytes=size,
        new_bytes=new_bytes,
        task=TaskId(task[1]) if task else None,
        worker=label == WORKER,
        tags=tuple(tags),
    )


class _Family:
    """The parents of executions. Loaded only if some execution has a parent."""

    def __init__(self, graph: Graph, needed: bool) -> None:
        rows = graph.connection.rows(_FAMILY, (graph.project,)) if needed else []
        self._number = {row[0]: int(row[2]) for row in rows}
        self._by_uid = {row[1]: int(row[2]) for row in rows}
        self._parent = {row[0]: row[3] for row in rows}

    def name(self, key: int | None) -> ExecutionId | None:
        number = None if key is None else self._number.get(key)
        return None if number is None else execution_id(number)

    def collection(self, given: str | None, key: int, number: int) -> str:
        """The collection that the execution names; else the id of the first ancestor."""
        if given is not None:
            return execution_id(self._by_uid[given]) if given in self._by_uid else given
        seen = {key}
        while (parent := self._parent.get(key)) is not None:
            if parent in seen or parent not in self._number:
                break
            key = parent
            seen.add(key)
        return execution_id(self._number.get(key, number))

"""Rows of the index for executions."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from clew.documents.ids import Uid
from clew.prov.graph import Graph
from clew.prov.queries.executions import TASK_LABEL, WORKER, IsRunning
from clew.prov.queries.formats import execution_id
from clew.replay.repeat.parameters import list_parameters
from clew.server.catalogue.activities.summary_row import (
    CHANGING,
    COMPLETE,
    ENDED,
    SummaryRow,
    clean,
    command_text,
    distinct,
    parameter_values,
    search_text,
)

_ROWS = """
SELECT x.id, x.uid, x.number, x.name, x.begun, x.made_elsewhere, p.name, s.at, s.command, s.agent,
       s.parent, s.mode, s.facets, e.at, e.status, e.signal, e.outputs
FROM execution x LEFT JOIN started s ON s.id = x.id LEFT JOIN ended e ON e.activity = x.id
LEFT JOIN started p ON p.execution = x.id AND p.number = 1 AND p.id <> x.id
WHERE x.id IN ({}) ORDER BY x.number, e.n
"""
_END = 13
"""The first column that is of an end."""
_MOST_WORDS = 1000
"""Words of a command that are looked at for parameters."""


class _Facets(msgspec.Struct):
    git: Any = None


def build_execution_rows(
    graph: Graph, keys: Iterable[int], *, alive: IsRunning
) -> list[SummaryRow]:
    """The rows of these executions, with parameters, but without metrics."""
    merged: dict[int, tuple[Any, ...]] = {}
    for row in graph.connection.rows_in(_ROWS, keys):
        known = merged.get(row[0])
        if known is None:
            merged[row[0]] = row
        else:  # a second end adds to the first
            pairs = zip(known[_END:], row[_END:], strict=True)
            ends = (old if new is None else new for old, new in pairs)
            merged[row[0]] = (*known[:_END], *ends)
    return [_build_row(graph, row, alive) for row in merged.values()]


def _build_row(graph: Graph, row: tuple[Any, ...], alive: IsRunning) -> SummaryRow:
    (key, uid, number, name, begun, elsewhere, label, started, words, agent, parent, mode, facets,
     ended, status, signal, outputs) = row  # fmt: skip
    started = (begun or 0) if started is None else started
    task = TASK_LABEL.fullmatch(label) if label else None
    kind = "worker" if label == WORKER else "task" if task else "execution"
    state = _state(ended, status, signal, uid, alive)
    if ended is None:  # no more comes of a broken execution that was made elsewhere
        progress = COMPLETE if elsewhere and state == "broken" else CHANGING
    else:
        has_values = kind == "execution" and (outputs != 0 or state == "failed")
        progress = ENDED if has_values else COMPLETE
    command = tuple(json.loads(words)) if words else ()
    listed = list_parameters(command[:_MOST_WORDS]) if kind == "execution" else ()
    git = _read_git(facets)
    git_words = (git["commit"], git["branch"]) if git else ()
    return SummaryRow(
        id=key,
        project=graph.project,
        uid=uid,
        type=kind,
        number=number,
        state=state,
        progress=progress,
        name=None if name is None else clean(name),
        kind=clean(mode or "reference"),
        task=clean(task[1]) if task else None,
        parent=parent,
        started=started / 1e9,
        ended=None if ended is None else ended / 1e9,
        seconds=None if ended is None else round((ended - started) / 1e9, 6),
        agent=None if agent is None else clean(agent),
        made_elsewhere=int(bool(elsewhere) or graph.foreign),
        error=_describe_end(status, signal) if state == "failed" else None,
        git=None if git is None else json.dumps(git),
        git_commit=None if git is None else git["commit"],
        command=command_text(command),
        search=search_text([execution_id(number), uid, name, label, agent, *command, *git_words]),
        values=distinct(parameter_values({p.name: p.value or True for p in listed})),
    )


def _state(
    ended: int | None, status: int | None, signal: int | None, uid: Uid, alive: IsRunning
) -> str:
    if ended is not None:
        return "done" if status == 0 and signal is None else "failed"
    return "running" if alive(uid) else "broken"


def _describe_end(status: int | None, signal: int | None) -> str:
    return f"killed by signal {signal}" if signal is not None else f"exit status {status}"


def _read_git(facets: str | None) -> dict[str, Any] | None:
    """The recorded Git facet; a record from elsewhere may have anything there."""
    try:
        git = msgspec.json.decode(facets or "{}", type=_Facets).git
    except msgspec.MsgspecError:
        return None
    if not isinstance(git, dict):
        return None
    texts = {name: git.get(name) for name in ("commit", "branch")}
    return {
        **{name: clean(text) if isinstance(text, str) else None for name, text in texts.items()},
        "dirty": git.get("dirty") is True,
    }

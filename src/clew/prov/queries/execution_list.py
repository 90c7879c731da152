"""Select executions by name, state, tag or text, newest first.

The database applies every condition but the state: a lock decides whether an execution that has no
end is running.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from clew.documents.document import to_nanoseconds
from clew.documents.executions.execution_list import Execution
from clew.errors import UsageError
from clew.prov.graph import Graph
from clew.prov.queries.executions import (
    EXECUTIONS,
    NO_WORKER,
    NOT_OF_CLUSTER,
    IsRunning,
    build_documents,
    is_text,
)
from clew.prov.queries.tags import HAS_TAG

STATES = ("running", "done", "failed", "broken")
_MADE = ("elsewhere", "here")
_LAST = 10**15
_END_OF_TIME = 2**62
_PAGE = 1000
_MOST_WORDS, _LONGEST = 50, 1000
_ESCAPES = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
LIKE = r"LIKE lower(?) ESCAPE '\'"
"""The database lowers both sides, so that they agree on letters that are not ASCII."""
_NAME = f"""
(lower(x.name) {LIKE}
 OR EXISTS (SELECT 1 FROM started p WHERE p.execution = x.id AND p.number = 1
            AND lower(p.name) {LIKE}))
"""  # noqa: S608
"""The first process of a pipeline task is named after the task."""
_TEXT = f"""
({_NAME} OR lower(s.command) {LIKE}
 OR EXISTS (SELECT 1 FROM note n WHERE n.activity = x.id AND n.name NOT IN ('tag', 'untag')
            AND lower(n.name || '=' || n.value) {LIKE})
 OR {HAS_TAG.replace("{}", f"lower(t.value) {LIKE}")})
"""  # noqa: S608
_SELECTED = """
FROM execution x LEFT JOIN started s ON s.id = x.id WHERE x.project = ? AND x.number < ? {}
"""


@dataclass(frozen=True)
class Conditions:
    """The conditions that executions must meet, all of them."""

    sql: str = ""
    parameters: tuple[object, ...] = ()
    states: frozenset[str] = field(default_factory=frozenset)
    """All of the states that were asked for; none: any state."""

    def accept(self, execution: Execution) -> bool:
        return self.states <= {execution.state}


def parse_conditions(
    filters: Iterable[str],
    *,
    since: datetime | None = None,
    workers: bool = False,
    foreign: bool = False,
) -> Conditions:
    """`filters`: `state:failed`, `name:TEXT`, `tag:NAME`, `made:elsewhere`, or any other text.
    `workers`: include workers of pipelines. `foreign`: all executions were made elsewhere."""
    sql = [NOT_OF_CLUSTER] if workers else [NOT_OF_CLUSTER, NO_WORKER]
    parameters: list[object] = []
    states = set()
    if since is not None:
        sql.append("AND coalesce(s.at, x.begun) >= ?")
        parameters.append(min(max(0, to_nanoseconds(since)), _END_OF_TIME))
    filters = list(filters)
    _check_length(filters)
    for text in filters:
        key, colon, value = text.partition(":")
        if colon and key == "state":
            states.add(_check("state", value, STATES))
        elif colon and key == "made":
            elsewhere = _check("made", value, _MADE) == "elsewhere"
            if not foreign:
                sql.append(f"AND x.made_elsewhere {'<>' if elsewhere else '='} 0")
            elif not elsewhere:
                sql.append("AND 1 = 0")
        elif colon and key == "name":
            sql.append(f"AND {_NAME}")
            parameters += [like_pattern(value)] * 2
        elif colon and key == "tag":
            sql.append(f"AND {HAS_TAG.replace('{}', 't.value = ?')}")
            parameters.append(value)
        else:
            for word in text.split():
                sql.append(f"AND {_TEXT}")
                parameters += [
                    *[like_pattern(word)] * 2,
                    like_json_pattern(word),
                    *[like_pattern(word)] * 2,
                ]
    return Conditions(" ".join(sql), tuple(parameters), frozenset(states))


def _check_length(filters: list[str]) -> None:
    """Each word costs a scan, and the database has limits for patterns and expressions."""
    if sum(len(text.split()) for text in filters) > _MOST_WORDS or any(
        len(text) > _LONGEST or (text and not is_text(text)) for text in filters
    ):
        raise UsageError(
            f"the filters have more than {_MOST_WORDS} words or {_LONGEST} characters, or are not"
            " text",
            hint="clew list WORD",
        )


def _check(key: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(
            f"there is no {key}:{value[:100]}", hint=" or ".join(f"{key}:{one}" for one in known)
        )
    return value


def like_pattern(text: str) -> str:
    """The pattern for values that contain `text`."""
    return f"%{text.translate(_ESCAPES)}%"


def like_json_pattern(text: str) -> str:
    """As `like`, for a column that holds JSON."""
    return like_pattern(json.dumps(text, ensure_ascii=False)[1:-1])


def select_executions(
    graph: Graph,
    conditions: Conditions,
    *,
    alive: IsRunning,
    before: int = _LAST,
    limit: int | None = None,
) -> list[Execution]:
    """At most `limit` executions with numbers below `before`, newest first."""
    found: list[Execution] = []
    selected = _SELECTED.replace("{}", conditions.sql)
    sql = EXECUTIONS.replace(
        "{}", f"AND x.id IN (SELECT x.id {selected} ORDER BY x.number DESC LIMIT ?)"
    )
    while limit is None or len(found) < limit:
        wanted = _LAST if limit is None else _PAGE if conditions.states else limit - len(found)
        parameters = (graph.project, graph.project, before, *conditions.parameters, wanted)
        page = build_documents(graph, graph.connection.rows(sql, parameters), alive)[::-1]
        found += filter(conditions.accept, page)
        if len(page) < wanted:
            break
        before = int((page[-1].id or "")[1:])
    return found[:limit]


def list_executions(
    graph: Graph, conditions: Conditions, *, alive: IsRunning, limit: int | None = None
) -> tuple[list[Execution], int]:
    """The newest executions, and how many more meet the conditions."""
    if conditions.states or limit is None:
        found = select_executions(graph, conditions, alive=alive)
        return found[:limit], len(found[limit:]) if limit else 0
    found = select_executions(graph, conditions, alive=alive, limit=limit)
    sql = f"SELECT count(*) {_SELECTED.replace('{}', conditions.sql)}"
    (total,) = graph.connection.rows(sql, (graph.project, _LAST, *conditions.parameters))[0]
    return found, int(total) - len(found)

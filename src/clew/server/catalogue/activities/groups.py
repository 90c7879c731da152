"""Put activities into groups: by a property, a tag, or the value of a parameter.

A page has only some of many activities, so the database counts and averages. The activities of one
group are listed like any others, with the condition that `is_in_group` adds. An activity with
several tags is in several groups.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.documents.document import from_nanoseconds
from clew.documents.project.activities import ActivityGroup, ActivityGroups, MetricRange
from clew.errors import UsageError
from clew.prov.graph import Graph
from clew.prov.queries.tags import HAS_TAG, IS_TAGGED
from clew.server.catalogue.activities.conditions import TAGGED, Conditions, Term
from clew.server.catalogue.activities.summary_row import METRIC, PARAMETER

# ruff: noqa: S608  (the only names put into SQL here are our own)

MOST_GROUPS = 500
_COLUMNS = {
    "name": "x.name",
    "state": "x.state",
    "type": "x.type",
    "kind": "x.kind",
    "agent": "x.agent",
    "git": "x.git_commit",
    "experiment": "x.experiment",
}
_PARAMETER_GROUP = re.compile(r"(?:params|parameters)\.(.{1,200})", re.DOTALL)
_OF_PARAMETER = """
EXISTS (SELECT 1 FROM activity_value g
        WHERE g.activity = x.id AND g.kind = ? AND g.name = ? AND g.text = ?)
"""
_WITHOUT_PARAMETER = """
NOT EXISTS (SELECT 1 FROM activity_value g WHERE g.activity = x.id AND g.kind = ? AND g.name = ?)
"""
_WITHOUT_TAG = f"NOT {HAS_TAG.replace('{}', '1 = 1')}"
_TAGS = f"""
LEFT JOIN (SELECT t.activity, t.value FROM note t
           WHERE t.project = ? AND t.name IN ('tag', 'untag')
           GROUP BY t.activity, t.value HAVING {IS_TAGGED}) g ON g.activity = x.id
"""
_PARAMETERS = """
LEFT JOIN activity_value g ON g.activity = x.id AND g.kind = ? AND g.name = ?
"""
_EXPERIMENTS = "SELECT id, name FROM experiment WHERE id IN ({})"


@dataclass(frozen=True)
class Grouping:
    """`key` is an SQL expression on the tables x and g, `join` joins g."""

    by: str
    key: str
    join: str = ""
    parameters: tuple[object, ...] = ()


def parse_grouping(graph: Graph, by: str) -> Grouping:
    """`by`: a column, `tag` or `params.NAME`."""
    if by in _COLUMNS:
        return Grouping(by, _COLUMNS[by])
    if by == "tag":
        return Grouping(by, "g.value", _TAGS, (graph.project,))
    if match := _PARAMETER_GROUP.fullmatch(by):
        return Grouping(by, "g.text", _PARAMETERS, (PARAMETER, match[1]))
    raise UsageError(
        f"cannot group by {by[:100]}", hint=f"{', '.join(_COLUMNS)}, tag or params.NAME"
    )


def is_in_group(by: str, key: str | None) -> Term:
    """Whether an activity is in a group, by the group's key; None: it is in no other group."""
    if by in _COLUMNS:
        column = _COLUMNS[by]
        return (f"{column} IS NULL", []) if key is None else (f"{column} = ?", [key])
    if by == "tag":
        return (_WITHOUT_TAG, []) if key is None else (TAGGED, [key])
    if match := _PARAMETER_GROUP.fullmatch(by):
        values: list[object] = [PARAMETER, match[1]]
        return (_WITHOUT_PARAMETER, values) if key is None else (_OF_PARAMETER, [*values, key])
    raise UsageError(
        f"cannot group by {by[:100]}", hint=f"{', '.join(_COLUMNS)}, tag or params.NAME"
    )


def group_activities(
    graph: Graph, conditions: Conditions, grouping: Grouping, *, metrics: Sequence[str] = ()
) -> ActivityGroups:
    """The groups of all activities that meet the conditions, those with the newest first; with the
    range of these metrics in each."""
    source = f"FROM activity_summary x {grouping.join}"
    where = f"WHERE x.project = ? AND {conditions.sql}"
    given = (*grouping.parameters, graph.project, *conditions.parameters)
    rows = graph.connection.rows(
        f"SELECT {grouping.key}, x.state, count(*), max(x.started), avg(x.seconds),"
        f" count(x.seconds) {source} {where} GROUP BY {grouping.key}, x.state",
        given,
    )
    found: dict[str | None, list[tuple[Any, ...]]] = {}
    for key, *counts in rows:
        found.setdefault(key, []).append(tuple(counts))
    ranges: dict[str | None, dict[str, MetricRange]] = {}
    if metrics:
        marks = ", ".join("?" * len(metrics))
        for key, name, lowest, highest, mean in graph.connection.rows(
            f"SELECT {grouping.key}, m.name, min(m.number), max(m.number), avg(m.number) {source}"
            " JOIN activity_value m ON m.activity = x.id AND m.kind = ?"
            f" AND m.name IN ({marks}) AND m.number IS NOT NULL"
            f" {where} GROUP BY {grouping.key}, m.name",
            (*grouping.parameters, METRIC, *metrics, *given[len(grouping.parameters) :]),
        ):
            ranges.setdefault(key, {})[name] = MetricRange(min=lowest, max=highest, mean=mean)
    labels = _find_labels(graph, grouping, list(found))
    groups = [
        _build_group(key, labels.get(key), counts, ranges.get(key, {}))
        for key, counts in found.items()
    ]
    groups.sort(key=lambda group: (group.newest is not None, group.newest or 0), reverse=True)
    return ActivityGroups(
        groups=tuple(groups[:MOST_GROUPS]), left_out=max(0, len(groups) - MOST_GROUPS)
    )


def _build_group(
    key: str | None,
    label: str | None,
    counts: Sequence[tuple[Any, ...]],
    metrics: dict[str, MetricRange],
) -> ActivityGroup:
    """`counts`: by state, the number, the latest start, and the average and number of times."""
    newest = max((latest for _, _, latest, _, _ in counts if latest is not None), default=None)
    timed = sum(number for *_, number in counts)
    seconds = sum(mean * number for *_, mean, number in counts if number)
    return ActivityGroup(
        key=key,
        label=label,
        total=sum(number for _, number, *_ in counts),
        states={state: number for state, number, *_ in counts},
        newest=None if newest is None else from_nanoseconds(round(newest * 1e9)),
        seconds=seconds / timed if timed else None,
        metrics=metrics,
    )


def _find_labels(
    graph: Graph, grouping: Grouping, keys: Sequence[str | None]
) -> dict[str | None, str | None]:
    """The labels of the keys: the name of an experiment, the value of a parameter."""
    known = [key for key in keys if key is not None]
    if grouping.by == "experiment":
        return dict(graph.connection.rows_in(_EXPERIMENTS, known))
    if grouping.by in (*_COLUMNS, "tag"):
        return {key: key for key in known}
    return {key: _show(json.loads(key)) for key in known}


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""A row of the index, and how it is written."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from clew.api.metric_collection import parse_parameter
from clew.prov.graph import Graph

CHANGING, ENDED, COMPLETE = range(3)
"""How far it is: it may still change; its metrics were not read yet; nothing is missing."""
MOST_VALUES = 200
"""Parameters, and metrics, of one activity."""
_LONGEST_NAME, _LONGEST_VALUE, _LONGEST_LINE = 200, 500, 500
_LONGEST_COMMAND, _LONGEST_SEARCH = 4000, 8000
PARAMETER, METRIC = "parameter", "metric"


@dataclass(frozen=True)
class Value:
    """A parameter, whose `text` is JSON, or a metric."""

    kind: str
    name: str
    number: float | None
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """The fields are the columns, except for `values`."""

    id: int
    project: int
    uid: str
    type: str
    number: int | None
    state: str
    progress: int
    recorded: int = 0
    requested: str = ""
    name: str | None
    kind: str = "reference"
    task: str | None = None
    parent: int | None = None
    started: float | None
    ended: float | None
    seconds: float | None
    agent: str | None = None
    experiment: str | None = None
    archived: int = 0
    made_elsewhere: int = 0
    error: str | None = None
    git: str | None = None
    git_commit: str | None = None
    command: str = "[]"
    search: str = ""
    values: tuple[Value, ...] = ()


COLUMNS = tuple(f.name for f in fields(SummaryRow) if f.name != "values")
_get_columns = attrgetter(*COLUMNS)
_UPSERT = (
    f"INSERT INTO activity_summary ({', '.join(COLUMNS)})"  # noqa: S608 (our own names)
    f" VALUES ({', '.join('?' * len(COLUMNS))})"
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in COLUMNS[1:])}"
)
_FORGET_VALUES = "DELETE FROM activity_value WHERE activity IN ({})"
_INSERT_VALUE = (
    "INSERT INTO activity_value (activity, kind, name, project, position, number, text)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def write_rows(graph: Graph, rows: Sequence[SummaryRow]) -> None:
    """Add these rows, or replace those of the same activities."""
    if not rows:
        return
    values = [
        (row.id, value.kind, value.name, row.project, position, value.number, value.text)
        for row in rows
        for position, value in enumerate(row.values)
    ]

    def write() -> None:
        graph.connection.insert(_UPSERT, [_get_columns(row) for row in rows])
        graph.connection.rows_in(_FORGET_VALUES, [row.id for row in rows])
        if values:
            graph.connection.insert(_INSERT_VALUE, values)

    graph.connection.atomically(write)


def parameter_values(parameters: Mapping[str, Any]) -> Iterable[Value]:
    """At most MOST_VALUES; long names and values are cut."""
    for name, given in list(parameters.items())[:MOST_VALUES]:
        value = parse_parameter(given)
        number = float(value) if is_number(value) else None
        if not isinstance(value, str | int | float | None):
            value = json.dumps(value)
        elif isinstance(value, float) and number is None:
            value = str(value)
        text = json.dumps(clean(value, _LONGEST_VALUE) if isinstance(value, str) else value)
        yield Value(PARAMETER, clean(name, _LONGEST_NAME), number, text)


def metric_values(metrics: Mapping[str, float]) -> Iterable[Value]:
    for name, value in list(metrics.items())[:MOST_VALUES]:
        yield Value(METRIC, clean(name, _LONGEST_NAME), float(value) if is_number(value) else None)


def distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Cutting may have made two names equal: the last value counts."""
    return tuple({(value.kind, value.name): value for value in values}.values())


def is_number(value: object) -> bool:
    """Whether it is a number that both databases and JSON can hold."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    )


def clean(text: str, longest: int = _LONGEST_LINE) -> str:
    """The beginning of a text, without what a database cannot store."""
    return (
        text[:longest]
        .encode("utf-8", "replace")
        .decode()
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def command_text(command: Sequence[str]) -> str:
    """The first words, as JSON."""
    words: list[str] = []
    room = _LONGEST_COMMAND
    for word in command:
        if room <= 0:
            words.append("…")
            break
        words.append(clean(word, room))
        room -= len(word) + 1
    return json.dumps(words)


def search_text(parts: Iterable[str | None]) -> str:
    return clean("\n".join(part for part in parts if part), _LONGEST_SEARCH).lower()

"""Pages of what is kept: filtered, sorted, and gone on with where the last page ended.

The end of a page is the row it ends with, its value and its id, and not a number of rows. So what
is added or deleted meanwhile neither repeats a row nor hides one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clew.db.connection import Row
from clew.prov.graph import Graph

Value = str | int
Kind = Literal["text", "moment", "pairs"]
COMPARISONS = {
    "EQUALS": "=",
    "NOT_EQUALS": "<>",
    "GREATER_THAN": ">",
    "GREATER_THAN_EQUALS": ">=",
    "LESS_THAN": "<",
    "LESS_THAN_EQUALS": "<=",
}
_NEVER = "1 = 0"
_TICK = 1000
"""Moments are kept in nanoseconds and shown, and so compared, in microseconds."""


@dataclass(frozen=True)
class Field:
    """What a list may be filtered and sorted by. `pairs` is a JSON object of texts."""

    sql: str
    kind: Kind = "text"
    optional: bool = False
    """It may not be known yet."""


@dataclass(frozen=True)
class Table:
    name: str
    columns: str
    fields: Mapping[str, Field]


@dataclass(frozen=True)
class Condition:
    """`values` are as many as the operation takes: moments in nanoseconds, or texts."""

    field: Field
    operation: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Cursor:
    """Where a page ended."""

    value: Value
    id: str


@dataclass(frozen=True)
class ListQuery:
    sort: Field
    descending: bool = False
    size: int = 20
    conditions: tuple[Condition, ...] = ()
    after: Cursor | None = None


@dataclass(frozen=True)
class Page:
    rows: list[Row]
    total: int
    """How many there are on all pages."""
    end: Cursor | None
    """None: there is no other page."""


def fetch_page(graph: Graph, table: Table, question: ListQuery, **within: str) -> Page:
    """One page of a table; `within`: columns, and what they must be."""
    where, values = ["project = ?"], [graph.project, *within.values()]
    where += [f"{column} = ?" for column in within]
    for condition in question.conditions:
        sql, given = _condition(condition)
        where.append(sql)
        values += given
    all_of = f"FROM {table.name} WHERE {' AND '.join(where)}"
    total = graph.connection.one(f"SELECT COUNT(*) {all_of}", values)
    sort = _sortable(question.sort)
    if question.after is not None:
        all_of += f" AND ({sort}, id) {'<' if question.descending else '>'} (?, ?)"
        values += [question.after.value, question.after.id]
    way = "DESC" if question.descending else "ASC"
    rows = graph.connection.rows(
        f"SELECT {table.columns}, {sort}, id {all_of}"
        f" ORDER BY {sort} {way}, id {way} LIMIT {question.size + 1:d}",
        values,
    )
    kept = rows[: question.size]
    end = Cursor(kept[-1][-2], str(kept[-1][-1])) if len(rows) > len(kept) else None
    return Page([row[:-2] for row in kept], int(total[0]) if total else 0, end)


def _sortable(field: Field) -> str:
    """What is not known yet comes first: a comparison with NULL would hide it."""
    return f"COALESCE({field.sql}, 0)" if field.optional else field.sql


def _condition(condition: Condition) -> tuple[str, list[Value]]:
    field, operation = condition.field, condition.operation
    if operation == "IS_SUBSTRING":
        (text,) = condition.values
        return f"LOWER({field.sql}) LIKE LOWER(?) ESCAPE '!'", [f"%{_escaped(str(text))}%"]
    if field.kind == "pairs":
        sql = " OR ".join([f"{field.sql} LIKE ? ESCAPE '!'"] * len(condition.values))
        sql = f"NOT ({sql})" if operation == "NOT_EQUALS" else f"({sql})"
        return sql, [f"%{_escaped(str(value))}%" for value in condition.values]
    sql, values = field.sql, list(condition.values)
    if field.kind == "moment":
        sql, values = f"({sql} / {_TICK})", [int(value) // _TICK for value in values]
    if operation == "IN":
        marks = ", ".join("?" * len(values))
        return (f"{sql} IN ({marks})" if values else _NEVER), values
    return f"{sql} {COMPARISONS[operation]} ?", values


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")

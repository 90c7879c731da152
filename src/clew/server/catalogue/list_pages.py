"""Pages of a table: filtered, sorted, and continued after a cursor.

A cursor is the last row of a page, its sort value and id, not a number of rows. So rows that are
added or deleted meanwhile cause no repeated and no missing rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clew.db.connection_interface import Row
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
_MICROSECOND = 1000
"""Times are stored in nanoseconds, but shown and therefore compared in microseconds."""


@dataclass(frozen=True)
class Field:
    """A field to filter and sort by. `moment` is a time; `pairs` a JSON object of strings."""

    sql: str
    kind: Kind = "text"
    optional: bool = False
    """It may be NULL."""


@dataclass(frozen=True)
class Table:
    name: str
    columns: str
    fields: Mapping[str, Field]
    where: str = "1 = 1"
    """The condition for rows of the list."""


@dataclass(frozen=True)
class Condition:
    """`values`: as many as the operation takes; times in nanoseconds, or strings."""

    field: Field
    operation: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Cursor:
    """The end of a page."""

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
    """The number of rows on all pages."""
    end: Cursor | None
    """None on the last page."""


def fetch_page(graph: Graph, table: Table, query: ListQuery, **within: str) -> Page:
    """One page of a table; `within`: columns and the values they must have."""
    where, values = ["project = ?", table.where], [graph.project, *within.values()]
    where += [f"{column} = ?" for column in within]
    for condition in query.conditions:
        sql, parameters = _condition_sql(condition)
        where.append(sql)
        values += parameters
    from_where = f"FROM {table.name} WHERE {' AND '.join(where)}"
    total = graph.connection.row(f"SELECT COUNT(*) {from_where}", values)
    # NULL sorts first, as 0: a comparison of the cursor with NULL would drop the row.
    sort = f"COALESCE({query.sort.sql}, 0)" if query.sort.optional else query.sort.sql
    if query.after is not None:
        from_where += f" AND ({sort}, id) {'<' if query.descending else '>'} (?, ?)"
        values += [query.after.value, query.after.id]
    direction = "DESC" if query.descending else "ASC"
    rows = graph.connection.rows(
        f"SELECT {table.columns}, {sort}, id {from_where}"
        f" ORDER BY {sort} {direction}, id {direction} LIMIT {query.size + 1:d}",
        values,
    )
    page = rows[: query.size]
    end = Cursor(page[-1][-2], str(page[-1][-1])) if len(rows) > len(page) else None
    return Page([row[:-2] for row in page], int(total[0]) if total else 0, end)


def _condition_sql(condition: Condition) -> tuple[str, list[Value]]:
    field, operation = condition.field, condition.operation
    if operation == "IS_SUBSTRING":
        (text,) = condition.values
        return f"LOWER({field.sql}) LIKE LOWER(?) ESCAPE '!'", [f"%{_escape(str(text))}%"]
    if field.kind == "pairs":
        sql = " OR ".join([f"{field.sql} LIKE ? ESCAPE '!'"] * len(condition.values))
        sql = f"NOT ({sql})" if operation == "NOT_EQUALS" else f"({sql})"
        return sql, [f"%{_escape(str(value))}%" for value in condition.values]
    sql, values = field.sql, list(condition.values)
    if field.kind == "moment":
        sql, values = f"({sql} / {_MICROSECOND})", [int(value) // _MICROSECOND for value in values]
    if operation == "IN":
        marks = ", ".join("?" * len(values))
        return (f"{sql} IN ({marks})" if values else _NEVER), values
    return f"{sql} {COMPARISONS[operation]} ?", values


def _escape(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")

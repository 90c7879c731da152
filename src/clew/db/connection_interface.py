"""The interface that SQLite and PostgreSQL connections share.

SQL is written once, with `?` for parameters, in the dialect that both support (`ON CONFLICT`,
recursive CTEs, `RETURNING`); neither `?` nor `%` occurs in it otherwise. Outside `atomically` each
statement is a transaction of its own.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")
Row = tuple[Any, ...]

MAX_VALUES = 500
"""Values in one `IN` list or rows in one INSERT: well below the limit of every driver."""

VALUES = re.compile(r"(?<=VALUES )(\([?, ]+\))")
"""The row of an INSERT. Many rows in one statement are several times faster."""


class Connection(ABC):
    """One open database. One thread at a time may use it."""

    where: str
    """The name of this database in errors."""

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run one statement and return all its rows."""

    @abstractmethod
    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        """Run one `INSERT … VALUES (?, …)` for many rows, no two of which replace each other."""

    @abstractmethod
    def atomically(self, action: Callable[[], Result]) -> Result:
        """Run `action` in one write transaction, and again from its start after a conflict.

        So `action` may be called more than once, and must have no effect but its result.
        """

    @abstractmethod
    def close(self) -> None: ...

    def row(self, sql: str, parameters: Sequence[object] = ()) -> Row | None:
        """The first row, or None."""
        rows = self.rows(sql, parameters)
        return rows[0] if rows else None

    def rows_in(
        self, sql: str, values: Iterable[object], *, before: Sequence[object] = ()
    ) -> list[Row]:
        """Run `sql`, which has one `IN ({})`, for any number of values."""
        wanted = list(values)
        rows: list[Row] = []
        for start in range(0, len(wanted), MAX_VALUES):
            part = wanted[start : start + MAX_VALUES]
            marks = ",".join("?" * len(part))
            rows += self.rows(sql.replace("{}", marks), (*before, *part))
        return rows

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

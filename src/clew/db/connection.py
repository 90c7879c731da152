"""The interface that SQLite and PostgreSQL connections share.

SQL is written once, with `?` for parameters, in the part of the language both speak
(`ON CONFLICT`, recursive CTEs, `RETURNING`); neither `?` nor `%` occurs in it otherwise.
Outside `atomically` every statement stands alone.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")
Row = tuple[Any, ...]

AT_ONCE = 500
"""How many values one IN list takes: well under every driver's limit, well over one round trip."""

VALUES = re.compile(r"(?<=VALUES )(\([?, ]+\))")
"""The row of an INSERT: many rows go into one statement, which is several times faster."""


class Connection(ABC):
    """One open database. One thread at a time may use it."""

    where: str
    """What an error calls this database."""

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Run one statement and fetch all it answers."""

    @abstractmethod
    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        """Run one `INSERT … VALUES (?, …)` for many rows, no two of which replace each other."""

    @abstractmethod
    def atomically(self, action: Callable[[], Result]) -> Result:
        """Run `action` in one write transaction, again from its start if the database asks for it.

        So `action` may be called more than once, and keeps its results in what it returns.
        """

    @abstractmethod
    def close(self) -> None: ...

    def one(self, sql: str, parameters: Sequence[object] = ()) -> Row | None:
        """The first row, if there is any."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def among(
        self, sql: str, values: Iterable[object], *, before: Sequence[object] = ()
    ) -> list[Row]:
        """`sql` holds one `IN (…)`, written `IN ({})`: ask it for any number of values."""
        wanted = list(values)
        found: list[Row] = []
        for start in range(0, len(wanted), AT_ONCE):
            part = wanted[start : start + AT_ONCE]
            marks = ",".join("?" * len(part))
            found += self.rows(sql.replace("{}", marks), (*before, *part))
        return found

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

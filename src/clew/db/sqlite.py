"""The graph in one file.

WAL, so that questions never wait for a recording; `synchronous` stays FULL: a commit is on
the disk when it returns, so an execution whose id was printed survives a power cut. A
recording commits a handful of times, so this costs a handful of syncs. Write
transactions take their lock at the start (`BEGIN IMMEDIATE`): two writers queue, and neither
can find out halfway that it lost.

WAL needs 32 KiB beside the file even to read. On a full disk each question therefore opens the
file for itself alone, which needs no room, until there is room again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from clew.db import migration_runner
from clew.db.connection import VALUES, Connection, Result, Row
from clew.disk_reserve import is_full
from clew.errors import MAKE_ROOM, Busy, ClewError, Damaged, Full, NotAllowed

PATIENCE = 30.0
"""Seconds to wait for another writer before giving up."""

_PARAMETERS = 999  # of one statement: older versions take no more

_WORDS = {
    "id": "INTEGER PRIMARY KEY",
    "int": "INTEGER",
    "bytes": "BLOB",
    "clustered": "WITHOUT ROWID",
}


class SQLite(Connection):
    def __init__(self, path: Path, *, patience: float = PATIENCE, cache: int = 64) -> None:
        """`cache`: MB of it in memory at most, and only as they are needed."""
        self.where = str(path)
        self._path = path
        self._patience = patience
        self._cache = cache
        self._cramped = False
        """No room: there is no connection, and questions are answered one by one."""
        try:
            self._start()
        except Full:
            self._cramped = True
            if not path.exists() or self._version() != migration_runner.KNOWN:
                raise

    def _start(self) -> None:
        try:
            self._sqlite = self._open()
        except sqlite3.Error as error:
            raise self._explain(error) from error
        try:
            self.rows(f"PRAGMA cache_size = {-1024 * self._cache}")
            self.rows("PRAGMA wal_autocheckpoint = 8192")  # 32 MB: hot pages are moved once
            self._bring_up_to_date()
        except BaseException:
            self._sqlite.close()
            raise

    def _try_again(self) -> None:
        """After a time without room: Full, if there still is none."""
        self._cramped = False
        try:
            self._start()
        except BaseException:
            self._cramped = True
            raise

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        if self._cramped:
            try:
                self._try_again()
            except Full:
                return self._rows_alone(sql, parameters)
        try:
            return self._sqlite.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _rows_alone(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        """In exclusive mode the WAL's index is in memory: nothing need be written to read."""
        try:
            with contextlib.closing(self._connect("rw")) as alone:
                alone.execute("PRAGMA locking_mode = EXCLUSIVE")
                alone.execute("PRAGMA temp_store = MEMORY")
                return alone.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        try:
            before, row, after = VALUES.split(sql)
            together = _PARAMETERS // row.count("?")
            whole = len(rows) - len(rows) % together
            if whole:  # preparing so long a statement costs as much as a hundred rows
                many = before + ", ".join([row] * together) + after
                parts = (rows[start : start + together] for start in range(0, whole, together))
                self._sqlite.executemany(many, (list(chain.from_iterable(part)) for part in parts))
            self._sqlite.executemany(sql, rows[whole:])
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def atomically(self, action: Callable[[], Result]) -> Result:
        if self._cramped:
            self._try_again()
        self.rows("BEGIN IMMEDIATE")
        try:
            result = action()
            self.rows("COMMIT")
            return result
        except BaseException:
            if self._sqlite.in_transaction:  # a full disk may have rolled it back already
                self._sqlite.execute("ROLLBACK")
            raise

    def close(self) -> None:
        if not self._cramped:
            self._sqlite.close()

    def _open(self) -> sqlite3.Connection:
        ours = not self._path.exists() or os.access(self._path, os.W_OK)
        if ours and os.access(self._path.parent, os.W_OK):
            return self._connect("rwc")
        found = self._connect("ro")
        try:
            found.execute("PRAGMA user_version").fetchone()
            return found
        except sqlite3.OperationalError:
            # WAL writes beside the file even to read it; where nobody can, nobody changes it.
            found.close()
            return self._connect("ro&immutable=1")

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = str(self._path.absolute()).replace("%", "%25").replace("?", "%3f")
        return sqlite3.connect(
            f"file:{name.replace('#', '%23')}?mode={mode}",
            uri=True,
            timeout=self._patience,
            check_same_thread=False,  # one after another may use it, as the server's do
            isolation_level=None,
            cached_statements=64,
        )

    def _bring_up_to_date(self) -> None:
        found = self._version()
        migration_runner.refuse_newer(found, self.where)
        if found == migration_runner.KNOWN:
            return
        self._use_wal()

        def upgrade() -> None:
            migration_runner.upgrade(self._version(), _WORDS, self.rows)
            self.rows(f"PRAGMA user_version = {migration_runner.KNOWN}")

        self.atomically(upgrade)

    def _version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def _use_wal(self) -> None:
        # Changing the mode does not wait for other openers by itself, so wait for it here.
        until = time.monotonic() + self._patience
        while True:
            try:
                self._sqlite.execute("PRAGMA journal_mode = WAL").fetchall()
                return
            except sqlite3.OperationalError as error:
                if not _is(error, "BUSY") or time.monotonic() > until:
                    raise self._explain(error) from error
                time.sleep(0.01)

    def _explain(self, error: sqlite3.Error) -> ClewError:
        where = self.where
        if _is(error, "BUSY", "LOCKED"):
            return Busy(
                f"{where} has been locked by another program for {self._patience:g} s",
                hint="try again when it has finished",
            )
        if _is(error, "READONLY", "PERM", "CANTOPEN", "AUTH"):
            return NotAllowed(
                f"{where} cannot be opened or written: {error}",
                hint=f"check the directory and its permissions: ls -la {self._path.parent}",
            )
        if _is(error, "FULL") or (_is(error, "IOERR") and is_full(self._path.parent)):
            return Full(f"no space left to write {where}", hint=MAKE_ROOM)
        if _is(error, "CORRUPT", "NOTADB"):
            return Damaged(
                f"{where} is damaged: {error}",
                hint=f"keep a copy, then try: sqlite3 {where} .recover",
            )
        if _is(error, "IOERR"):
            return ClewError(f"{where} cannot be read or written: {error}", hint="check the disk")
        return ClewError(f"{where} refused: {error}", hint="clew fsck")


def _is(error: sqlite3.Error, *names: str) -> bool:
    name = getattr(error, "sqlite_errorname", "") or ""
    return any(name == f"SQLITE_{n}" or name.startswith(f"SQLITE_{n}_") for n in names)

"""The graph in one file.

WAL, so that queries never wait for a writer; `synchronous` stays FULL: a commit is on
the disk when it returns, so an execution whose id was printed survives a power cut. A
recording commits a handful of times, so this costs a handful of syncs. Write
transactions take their lock at the start (`BEGIN IMMEDIATE`): two writers queue, and neither
fails halfway with a lock conflict.

WAL needs 32 KiB beside the file even to read. On a full disk each query therefore opens the
file for itself alone, which needs no room, until there is room again.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from clew.db import migration_runner
from clew.db.connection_interface import VALUES, Connection, Result, Row
from clew.disk_reserve import is_full
from clew.errors import MAKE_ROOM, Busy, ClewError, Damaged, Full, NotAllowed

PATIENCE = 30.0
"""Seconds to wait for another writer before giving up."""

_PARAMETERS = 999  # of one statement: older versions take no more

_WORDS = {
    "id": "INTEGER PRIMARY KEY",
    "int": "INTEGER",
    "float": "REAL",
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
        self._disk_full = False
        """The disk is full: there is no open connection, and each query opens the file for
        itself."""
        try:
            self._start()
        except Full:
            self._disk_full = True
            if not path.exists() or self._version() != migration_runner.LATEST:
                raise

    def _start(self) -> None:
        try:
            self._sqlite = self._open()
        except sqlite3.Error as error:
            raise self._explain(error) from error
        try:
            self.rows(f"PRAGMA cache_size = {-1024 * self._cache}")
            self.rows("PRAGMA wal_autocheckpoint = 8192")  # 32 MB: hot pages are moved once
            self._migrate()
        except BaseException:
            self._sqlite.close()
            raise

    def _reopen(self) -> None:
        """Open again after the disk was full; raises Full if it still is."""
        self._disk_full = False
        try:
            self._start()
        except BaseException:
            self._disk_full = True
            raise

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        if self._disk_full:
            try:
                self._reopen()
            except Full:
                return self._rows_exclusive(sql, parameters)
        try:
            return self._sqlite.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _rows_exclusive(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        """Read in exclusive mode, which keeps the index of the WAL in memory and writes nothing."""
        try:
            with contextlib.closing(self._connect("rw")) as connection:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA temp_store = MEMORY")
                return connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        try:
            before, row, after = VALUES.split(sql)
            batch = _PARAMETERS // row.count("?")
            batched = len(rows) - len(rows) % batch
            if batched:  # preparing so long a statement costs as much as a hundred rows
                many = before + ", ".join([row] * batch) + after
                parts = (rows[start : start + batch] for start in range(0, batched, batch))
                self._sqlite.executemany(many, (list(chain.from_iterable(part)) for part in parts))
            self._sqlite.executemany(sql, rows[batched:])
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def atomically(self, action: Callable[[], Result]) -> Result:
        if self._disk_full:
            self._reopen()
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
        if not self._disk_full:
            self._sqlite.close()

    def _open(self) -> sqlite3.Connection:
        writable = not self._path.exists() or os.access(self._path, os.W_OK)
        if writable and os.access(self._path.parent, os.W_OK):
            return self._connect("rwc")
        connection = self._connect("ro")
        try:
            connection.execute("PRAGMA user_version").fetchone()
            return connection
        except sqlite3.OperationalError:
            # WAL needs to write beside the file even to read. In a read-only directory the file
            # does not change, so it counts as immutable.
            connection.close()
            return self._connect("ro&immutable=1")

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = str(self._path.absolute()).replace("%", "%25").replace("?", "%3f")
        return sqlite3.connect(
            f"file:{name.replace('#', '%23')}?mode={mode}",
            uri=True,
            timeout=self._patience,
            check_same_thread=False,  # the server's threads use it one after another
            isolation_level=None,
            cached_statements=64,
        )

    def _migrate(self) -> None:
        version = self._version()
        migration_runner.check_version(version, self.where)
        if version == migration_runner.LATEST:
            return
        self._use_wal()

        def upgrade() -> None:
            migration_runner.apply_migrations(self._version(), _WORDS, self.rows)
            self.rows(f"PRAGMA user_version = {migration_runner.LATEST}")

        self.atomically(upgrade)

    def _version(self) -> int:
        return int(self.rows("PRAGMA user_version")[0][0])

    def _use_wal(self) -> None:
        # Changing the mode does not wait for other connections by itself.
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

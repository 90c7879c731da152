"""The graph in a PostgreSQL server, shared by many machines and many projects.

Everything lives in the schema `clew`, so the database may hold other things as well. Rows are
inserted in the order of their keys (the fold sorts them), so two writers meet in one order;
should the server still find a deadlock, the transaction is run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import psycopg
from psycopg import errors

from clew.db import migrating
from clew.db.connections import AT_ONCE, VALUES, Connection, Result, Row
from clew.errors import Busy, ClewError, Damaged, NoDatabase, NotAllowed

_WORDS = {"id": "BIGINT PRIMARY KEY", "int": "BIGINT", "bytes": "BYTEA", "clustered": ""}
_LOCK = 0x636C6577  # "clew": the advisory lock that lets one opener at a time migrate
_TRIES = 8
_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure)


class PostgreSQL(Connection):
    def __init__(self, address: str) -> None:
        try:
            self._server = psycopg.connect(address, autocommit=True, connect_timeout=10)
        except psycopg.Error as error:
            self.where = "the graph database"
            raise NoDatabase(
                f"the graph database cannot be reached: {_line(error)}",
                hint="check CLEW_GRAPH and that the server runs",
            ) from error
        info = self._server.info
        self.where = f"the database {info.dbname} on {info.host or 'this machine'}"
        try:
            self._server.execute("SET search_path TO clew")
            self._bring_up_to_date()
        except psycopg.Error as error:
            self._server.close()
            self._fail(error)
        except BaseException:
            self._server.close()
            raise

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        try:
            cursor = self._server.execute(_translated(sql), parameters)
            return cursor.fetchall() if cursor.description else []
        except _AGAIN:
            raise
        except psycopg.Error as error:
            self._fail(error)

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        before, row, after = VALUES.split(sql)
        try:
            for start in range(0, len(rows), AT_ONCE):
                part = rows[start : start + AT_ONCE]
                values = ", ".join([row] * len(part))
                flat = [value for given in part for value in given]
                self._server.execute(_translated(f"{before}{values}{after}"), flat)
        except _AGAIN:
            raise
        except psycopg.Error as error:
            self._fail(error)

    def atomically(self, action: Callable[[], Result]) -> Result:
        for attempt in range(_TRIES):
            try:
                with self._server.transaction():
                    return action()
            except _AGAIN:
                time.sleep(0.01 * 2**attempt)
            except psycopg.Error as error:
                self._fail(error)
        raise Busy(f"{self.where} is busy with other writers", hint="try again")

    def close(self) -> None:
        self._server.close()

    def _bring_up_to_date(self) -> None:
        found = self._version()
        migrating.refuse_newer(found, self.where)
        if found == migrating.KNOWN:
            return
        with self._server.transaction():
            self._server.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._server.execute("CREATE SCHEMA IF NOT EXISTS clew")
            self._server.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
            found = self._version()
            migrating.refuse_newer(found, self.where)
            migrating.upgrade(found, _WORDS, self._run)
            self._server.execute("DELETE FROM schema_version")
            self._server.execute("INSERT INTO schema_version VALUES (%s)", (migrating.KNOWN,))

    def _run(self, statement: str) -> None:
        self._server.execute(statement.encode())

    def _version(self) -> int:
        try:
            found = self._server.execute("SELECT max(version) FROM schema_version").fetchone()
        except errors.UndefinedTable:
            return 0
        return int(found[0] or 0) if found else 0

    def _fail(self, error: psycopg.Error) -> NoReturn:
        where = self.where
        if isinstance(error, (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)):
            raise NotAllowed(
                f"{where} refuses to be written: {_line(error)}",
                hint="ask for CREATE and write permission on it",
            ) from error
        if isinstance(error, errors.DiskFull):
            raise ClewError(f"no space left on the server of {where}") from error
        if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
            raise Damaged(f"{where} is damaged: {_line(error)}") from error
        if self._server.closed or isinstance(error, psycopg.OperationalError):
            raise NoDatabase(
                f"the connection to {where} was lost: {_line(error)}", hint="try again"
            ) from error
        raise ClewError(f"{where} refused: {_line(error)}", hint="clew fsck") from error


def _translated(sql: str) -> Any:
    return sql.replace("?", "%s").encode()


def _line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]

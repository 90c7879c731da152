"""The graph in a PostgreSQL server, shared by many machines and many projects.

All tables are in the schema `clew`, so the database may have other tables too. The fold inserts
rows in the order of their keys, which avoids most deadlocks between writers; after a deadlock the
transaction is run again.

A connection may be lost at any time: the server is restarted, an administrator ends it, the network
fails. A query outside a transaction, and a transaction whose commit was not sent yet, are then
repeated once on a new connection. Anything else raises NoDatabase: the statement may have had its
effect, and only the caller knows whether it can be repeated (a fold always can).
"""

import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NoReturn, TypeVar, cast

import psycopg
from psycopg import conninfo, errors

from clew.db import migration_runner
from clew.db.connection_interface import VALUES, Connection, Result, Row
from clew.errors import Busy, ClewError, Damaged, NoDatabase, NotAllowed, UsageError

T = TypeVar("T")

_WORDS = {
    "id": "BIGINT PRIMARY KEY",
    "int": "BIGINT",
    "float": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "clustered": "",
}
_LOCK = 0x636C6577  # "clew": the advisory lock for migrations
_TRIES = 8
_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)
_TIMEOUTS = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Timeouts of libpq, in seconds (the last in milliseconds). The address may override them."""
_ROWS = 5000
"""Rows of one INSERT, and values of one array."""
_INSERT = re.compile(r"\s*INSERT INTO (\w+)\s*\(([^)]+)\)")
_TYPES = b"""
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_READS = re.compile(r"\s*(SELECT|WITH)\b(?!.*\b(INSERT|UPDATE|DELETE)\b)", re.DOTALL)


class _Session(psycopg.Connection[Row]):
    """A session that is closed when a statement takes too long."""

    patience: float | None = None
    """Seconds that a statement may take; None: no limit."""
    hung = False

    def wait(self, gen: Generator[Any, Any, T], *given: Any, **more: Any) -> T:
        if self.patience is not None:
            gen = self._limited(gen, time.monotonic() + self.patience)
        return super().wait(gen, *given, **more)

    def _limited(self, gen: Generator[Any, Any, T], until: float) -> Generator[Any, Any, T]:
        """The same steps of a conversation with the server. psycopg calls it several times a
        second, also when there is nothing to read."""
        try:
            step = next(gen)
            while True:
                ready = yield step
                if not ready and time.monotonic() > until:
                    self.hung = True
                    self.pgconn.finish()
                    raise psycopg.OperationalError("it did not answer in time")
                step = gen.send(ready)
        except StopIteration as end:
            answer: T = end.value
            return answer


class PostgreSQL(Connection):
    def __init__(self, address: str, *, patience: float) -> None:
        """`patience`: seconds that each statement may take. A server process that is stopped, or
        waits for the lock of one that is, keeps its connection open and never answers."""
        self.where = "the graph database"
        try:
            given = conninfo.conninfo_to_dict(address)
            self._address = conninfo.make_conninfo("", **{**_TIMEOUTS, **given})
        except psycopg.ProgrammingError as error:
            raise UsageError(
                "CLEW_GRAPH is not the address of a PostgreSQL database",
                hint="CLEW_GRAPH=postgresql://user@host/database",
            ) from error  # without its text, which may contain the password
        self._patience = patience
        self._in_transaction = False
        self._closed = False  # by `close`
        self._statements: dict[str, bytes] = {}
        self._open()

    def _open(self) -> None:
        try:
            self._server = _Session.connect(self._address, autocommit=True)
        except psycopg.Error as error:
            raise NoDatabase(
                f"the graph database cannot be reached: {_first_line(error)}",
                hint="check CLEW_GRAPH and that the server runs",
            ) from error
        self._server.patience = self._patience
        info = self._server.info
        self.where = f"the database {info.dbname} on {info.host or 'this machine'}"
        try:
            self._server.execute("SET search_path TO clew")
            # Without it, the server waits for the lock even after this connection is closed.
            self._server.execute(f"SET lock_timeout TO {int(self._patience * 1000)}".encode())
            self._migrate()
        except psycopg.Error as error:
            self._server.close()
            self._fail(error)
        except BaseException:
            self._server.close()
            raise

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        self._reopen_if_lost()
        try:
            return self._rows(sql, parameters)
        except NoDatabase:
            if self._in_transaction or not self._lost or not _READS.match(sql):
                raise
        self._open()
        return self._rows(sql, parameters)

    def rows_in(
        self, sql: str, values: Iterable[object], *, before: Sequence[object] = ()
    ) -> list[Row]:
        """One array in place of the list: a parameter for each value takes most of the time of both
        sides, and each length of a list would be a statement of its own."""
        statement = sql.replace("IN ({})", "= ANY(?)")
        wanted = list(values)
        rows: list[Row] = []
        for start in range(0, len(wanted), _ROWS):
            rows += self.rows(statement, (*before, _array(wanted[start : start + _ROWS])))
        return rows

    def _rows(self, sql: str, parameters: Sequence[object]) -> list[Row]:
        try:
            cursor = self._server.execute(_to_psycopg(sql), parameters)
            return cursor.fetchall() if cursor.description else []
        except _CONFLICTS:
            raise
        except psycopg.Error as error:
            self._fail(error)

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        self._reopen_if_lost()
        try:
            statement = self._arrays_statement(sql)
            for start in range(0, len(rows), _ROWS):
                columns = zip(*rows[start : start + _ROWS], strict=True)
                self._server.execute(statement, list(map(_array, columns)))
        except _CONFLICTS:
            raise
        except psycopg.Error as error:
            self._fail(error)

    def _arrays_statement(self, sql: str) -> bytes:
        """The INSERT with one array for each column in place of the row. It is as short for
        thousands of rows as for one: a parameter for each value takes most of the time of both
        sides."""
        known = self._statements.get(sql)
        if known is None:
            insert, _, after = VALUES.split(sql)
            match = _INSERT.match(insert)
            table, names = match.groups() if match else ("", "")
            types = {row[0]: row[1] for row in self._server.execute(_TYPES, (table,)).fetchall()}
            columns = [name.strip() for name in names.split(",")]
            if not types.keys() >= set(columns):
                raise ClewError(f"{self.where} has no table for {sql[:80]!r}")
            arrays = ", ".join(f"%s::{types[name]}[]" for name in columns)
            into = insert.replace("VALUES ", "")
            known = f"{into} SELECT * FROM unnest({arrays}){after}".encode()  # noqa: S608 (our SQL)
            self._statements[sql] = known
        return known

    def atomically(self, action: Callable[[], Result]) -> Result:
        lost = False
        for attempt in range(_TRIES):
            self._reopen_if_lost()
            self._in_transaction, committing = True, False
            try:
                with self._server.transaction():
                    result = action()
                    committing = True
                return result
            except _CONFLICTS:
                time.sleep(0.01 * 2**attempt)
            except (psycopg.Error, NoDatabase) as error:
                if lost or committing or not self._lost:
                    self._fail(error)
                lost = True
            finally:
                self._in_transaction = False
        raise Busy(f"{self.where} is busy with other writers", hint="try again")

    def close(self) -> None:
        self._closed = True
        self._server.close()

    @property
    def _lost(self) -> bool:
        """Whether to retry at once; not after a timeout, which would double the wait."""
        return self._server.closed and not self._closed and not self._server.hung

    def _reopen_if_lost(self) -> None:
        """Open a new connection, unless a transaction is running on the lost one."""
        if self._server.closed and not self._closed and not self._in_transaction:
            self._open()

    def _migrate(self) -> None:
        version = self._version()
        migration_runner.check_version(version, self.where)
        if version == migration_runner.LATEST:
            return
        with self._server.transaction():
            self._server.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._server.execute("CREATE SCHEMA IF NOT EXISTS clew")
            self._server.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER)")
            version = self._version()
            migration_runner.check_version(version, self.where)
            self._server.patience = None  # a large graph may take minutes
            migration_runner.apply_migrations(version, _WORDS, self._run)
            self._server.patience = self._patience
            self._server.execute("DELETE FROM schema_version")
            self._server.execute(
                "INSERT INTO schema_version VALUES (%s)", (migration_runner.LATEST,)
            )

    def _run(self, statement: str) -> None:
        self._server.execute(statement.encode())

    def _version(self) -> int:
        try:
            row = self._server.execute("SELECT max(version) FROM schema_version").fetchone()
        except errors.UndefinedTable:
            return 0
        return int(row[0] or 0) if row else 0

    def _fail(self, error: psycopg.Error | NoDatabase) -> NoReturn:
        if isinstance(error, NoDatabase):
            raise error
        where = self.where
        if isinstance(error, (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)):
            raise NotAllowed(
                f"{where} cannot be written: {_first_line(error)}",
                hint="ask for CREATE and write permission on it",
            ) from error
        if isinstance(error, errors.DiskFull):
            raise ClewError(f"no space left on the server of {where}") from error
        if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
            raise Damaged(f"{where} is damaged: {_first_line(error)}") from error
        if self._server.closed or isinstance(error, psycopg.OperationalError):
            raise NoDatabase(
                f"the connection to {where} was lost: {_first_line(error)}", hint="try again"
            ) from error
        raise ClewError(f"{where} refused: {_first_line(error)}", hint="clew fsck") from error


def _array(values: Sequence[object]) -> str:
    """The values of a column as PostgreSQL writes an array. Most columns have one type, and texts
    without characters that have a meaning there: these are joined at once."""
    types = set(map(type, values))
    if types == {int}:
        return f"{{{','.join(map(str, values))}}}"
    if types == {str}:
        joined = '","'.join(cast("Sequence[str]", values))
        if "\\" not in joined and joined.count('"') == 2 * (len(values) - 1):
            return f'{{"{joined}"}}'
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: object) -> str:
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        return "NULL"
    if isinstance(value, bytes | memoryview):
        return f'"\\\\x{value.hex()}"'
    text = str(value)
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _to_psycopg(sql: str) -> Any:
    return sql.replace("?", "%s").encode()


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]

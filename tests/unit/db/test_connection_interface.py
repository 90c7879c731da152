"""Opening, migrating, waiting and failing: on both databases where both can do it."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.processes import as_root, mounted

from clew.db import Connection, connect, migration_runner
from clew.db.sqlite import SQLite
from clew.errors import Busy, ClewError, Damaged, Full, NoDatabase, NotAllowed, UsageError


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str | None]:
    """A database without a schema."""
    address = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return tmp_path / "graph.db", address


def test_the_newest_migration_is_the_known_one() -> None:
    files = sorted((Path(migration_runner.__file__).parent / "migrations").glob("*.sql"))
    assert [int(file.stem) for file in files] == list(range(1, migration_runner.LATEST + 1))


def test_runs_leave_the_table_of_executions(
    database: tuple[Path, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema 8 gives pipeline runs, which had negative numbers, a table of their own."""
    path, address = database
    executions = """INSERT INTO execution (id, project, uid, number, name, begun) VALUES
        (1, 7, 'a', 1, 'first', 10), (2, 7, 'b', -1, NULL, 20), (3, 8, 'c', -1, NULL, NULL)"""
    request = """INSERT INTO run (id, project, created, state, archived, experiment, name,
        description, spec, stop, lease, tries, service_account, config)
        VALUES ('b', 7, 15, 'failed', 0, 'x', 'n', '', 'd', 0, 0, 1, '', '{}')"""
    with monkeypatch.context() as patched:
        patched.setattr(migration_runner, "LATEST", 7)
        with connect(path, address=address) as connection:
            connection.rows(executions)
            connection.rows(request)
    with connect(path, address=address) as connection:
        assert connection.rows("SELECT id, number, name FROM execution") == [(1, 1, "first")]
        runs = connection.rows("SELECT id, project, uid, number, begun FROM run ORDER BY id")
        assert runs == [(2, 7, "b", 1, 20), (3, 8, "c", 1, 0)]
        assert connection.rows("SELECT id, state FROM run_request") == [("b", "failed")]


def test_opening_again_finds_what_was_written(database: tuple[Path, str | None]) -> None:
    path, address = database
    with connect(path, address=address) as one:
        one.rows("INSERT INTO project (id, uid, executions) VALUES (1, 'u', 0)")
    with connect(path, address=address) as other:
        assert other.rows("SELECT uid FROM project") == [("u",)]


def test_many_first_opens_at_once_make_one_schema(database: tuple[Path, str | None]) -> None:
    path, address = database
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def first() -> None:
        try:
            start.wait()
            with connect(path, address=address) as connection:
                assert connection.rows("SELECT count(*) FROM execution") == [(0,)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=first) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_failed_transaction_leaves_nothing(connection: Connection) -> None:
    def half() -> None:
        connection.rows("INSERT INTO project (id, uid, executions) VALUES (1, 'u', 0)")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        connection.atomically(half)
    assert connection.rows("SELECT * FROM project") == []
    assert connection.atomically(lambda: 5) == 5


def test_nonsense_is_refused_as_our_own_error(connection: Connection) -> None:
    with pytest.raises(ClewError):
        connection.rows("SELECT * FROM nowhere")
    with pytest.raises(ClewError):
        connection.insert("INSERT INTO nowhere VALUES (?)", [(1,)])


def test_many_values_are_queried_in_batches(connection: Connection) -> None:
    rows = [(i, "u", 0) for i in range(2000)]
    insert = "INSERT INTO project (id, uid, executions) VALUES (?, ?, ?)"
    connection.atomically(lambda: connection.insert(insert, rows))
    found = connection.rows_in(
        "SELECT id FROM project WHERE uid = ? AND id IN ({})", range(-5, 1500), before=("u",)
    )
    assert sorted(row[0] for row in found) == list(range(1500))


def test_a_newer_schema_is_refused(tmp_path: Path, postgres: str) -> None:
    path = tmp_path / "g.db"
    connect(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 999")
    raw.close()
    with pytest.raises(ClewError, match="999") as refused:
        connect(path)
    assert "upgrade" in refused.value.hint
    with connect(path, address=postgres) as server:
        server.rows("UPDATE schema_version SET version = 999")
    with pytest.raises(ClewError, match="999"):
        connect(path, address=postgres)


def test_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    path = tmp_path / "g.db"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(Damaged) as refused:
        connect(path)
    assert refused.value.hint


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotAllowed) as refused:
        connect(tmp_path / "none" / "g.db")
    assert refused.value.hint


def test_another_writer_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "g.db"
    connect(path).close()
    with SQLite(path) as one, SQLite(path, patience=0.05) as other:

        def meanwhile() -> None:
            assert other.rows("SELECT count(*) FROM project") == [(0,)]  # reading never waits
            with pytest.raises(Busy):
                other.atomically(lambda: None)

        one.atomically(meanwhile)
        assert other.atomically(lambda: "free again") == "free again"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    address = f"host={tmp_path} dbname=x password=secret"
    with pytest.raises(ClewError, match="cannot be reached") as refused:
        connect(tmp_path / "g.db", address=address)
    assert "CLEW_GRAPH" in refused.value.hint
    assert "secret" not in refused.value.message


_UNPRIVILEGED = """
import os, sys
from pathlib import Path
import clew.db.sqlite
from clew.db import connect
from clew.errors import NotAllowed
if os.geteuid() == 0:  # root may write everything, so become somebody who may not
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
connection = connect(Path(sys.argv[1]))
assert connection.rows("SELECT uid FROM project") == [("u",)]
try:
    connection.atomically(lambda: connection.rows("DELETE FROM project"))
except NotAllowed as error:
    assert error.hint
    print("refused")
"""


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that other users may enter; pytest's own are closed to them."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def test_a_read_only_project_is_read_and_not_written(open_directory: Path) -> None:
    directory = open_directory / "closed"
    directory.mkdir()
    with connect(directory / "g.db") as connection:
        connection.rows("INSERT INTO project (id, uid, executions) VALUES (1, 'u', 0)")
    (directory / "g.db").chmod(0o444)
    directory.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _UNPRIVILEGED, str(directory / "g.db")],
            capture_output=True,
            text=True,
        )
    finally:
        directory.chmod(0o755)
    assert done.stderr == ""
    assert done.stdout == "refused\n"


_FULL = """
import resource, signal, sys
from pathlib import Path
from clew.db import connect
from clew.errors import ClewError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
connection = connect(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
rows = [(i, "u" * 1000, 0) for i in range(1000)]
insert = "INSERT INTO project (id, uid, executions) VALUES (?, ?, ?)"
try:
    connection.atomically(lambda: connection.insert(insert, rows))
except ClewError as error:
    print(error.message)
print(connection.rows("SELECT count(*) FROM project")[0][0])
"""


def test_a_disk_that_is_full_loses_the_transaction_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "g.db"
    done = subprocess.run([sys.executable, "-c", _FULL, str(path)], capture_output=True, text=True)
    assert done.stderr == ""
    message, count = done.stdout.splitlines()
    assert str(path) in message
    assert count == "0"
    with connect(path) as connection:
        assert connection.rows("PRAGMA integrity_check") == [("ok",)]


_LEAVES_A_LOG = """
import os, sys
from pathlib import Path
from clew.db import connect
connection = connect(Path(sys.argv[1]))
connection.rows("INSERT INTO project (id, uid, executions) VALUES (1, 'u', 0)")
os._exit(0)
"""


@as_root
def test_a_full_disk_can_be_read_with_what_a_killed_writer_left(tmp_path: Path) -> None:
    """In the log beside the file, which is not in the file yet."""
    count = "SELECT count(*) FROM project"
    insert = "INSERT INTO project (id, uid, executions) VALUES (2, 'v', 0)"
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=2m", "none"):
        path = tmp_path / "disk" / "g.db"
        subprocess.run([sys.executable, "-c", _LEAVES_A_LOG, path], check=True)
        assert path.with_name("g.db-wal").stat().st_size > 0
        path.with_name("g.db-shm").unlink()
        ballast = tmp_path / "disk" / "ballast"
        with open(ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(ballast).free)
        with connect(path) as one, connect(path) as other:  # neither shuts the other out
            assert one.rows(count) == other.rows(count) == [(1,)]
            with pytest.raises(Full):
                one.atomically(lambda: one.rows(insert))
            ballast.unlink()
            one.atomically(lambda: one.rows(insert))  # there is room again
            assert one.rows(count) == other.rows(count) == [(2,)]


@as_root
def test_a_full_disk_has_no_room_for_a_new_database(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=16k", "none"):
        (tmp_path / "disk" / "ballast").write_bytes(bytes(16 << 10))
        with pytest.raises(Full):
            connect(tmp_path / "disk" / "g.db")


def cut(address: str) -> None:
    """Lose every connection to the database but our own."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as server:
        server.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def test_a_lost_connection_is_opened_again_for_what_had_no_effect(postgres: str) -> None:
    insert = "INSERT INTO project (id, uid, executions) VALUES (?, 'u', 0)"
    with connect(Path("unused"), address=postgres) as connection:
        cut(postgres)
        assert connection.rows("SELECT count(*) FROM project") == [(0,)]
        cut(postgres)
        connection.atomically(lambda: connection.rows(insert, (1,)))
        cuts = iter([True, False])

        def cut_halfway() -> None:
            connection.rows(insert, (2,))
            if next(cuts):
                cut(postgres)
            connection.rows(insert, (3,))

        connection.atomically(cut_halfway)
        assert connection.rows("SELECT id FROM project ORDER BY id") == [(1,), (2,), (3,)]


def test_a_statement_that_may_have_committed_is_not_repeated(postgres: str) -> None:
    insert = "INSERT INTO project (id, uid, executions) VALUES (?, 'u', 0)"
    with connect(Path("unused"), address=postgres) as connection:
        cut(postgres)
        with pytest.raises(NoDatabase):
            connection.rows(insert, (1,))
        connection.rows(insert, (2,))  # the loss is known by now, and nothing was sent

        def cut_at_the_commit() -> None:
            connection.rows(insert, (3,))
            cut(postgres)

        with pytest.raises(NoDatabase):
            connection.atomically(cut_at_the_commit)
        assert connection.rows("SELECT id FROM project") == [(2,)]


def test_an_invalid_address_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="CLEW_GRAPH"):
        connect(Path("unused"), address="postgresql://host:port/x y z")


def test_a_server_that_does_not_answer_is_left(postgres: str, tmp_path: Path) -> None:
    with connect(tmp_path / "none", address=postgres, patience=0.3) as connection:
        with pytest.raises(NoDatabase, match="did not answer in time"):
            connection.rows("SELECT pg_sleep(600)")
        assert connection.rows("SELECT 1") == [(1,)], "on a new connection"
        with connect(tmp_path / "none", address=postgres) as other:

            def lock() -> None:
                other.rows("LOCK TABLE execution IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(NoDatabase):
                    connection.rows("SELECT count(*) FROM execution")

            other.atomically(lock)
        assert connection.rows("SELECT count(*) FROM execution") == [(0,)]


def test_any_value_is_stored_as_it_is(connection: Connection) -> None:
    """PostgreSQL gets the rows as arrays, in which some characters have a meaning."""
    texts = ['a"b', "a\\b", "NULL", "", "{}", "a,b", " ", "ü\n\t'", "\\x00", "%s", "?"]
    insert = (
        "INSERT INTO activity_value (activity, kind, name, project, position, number, text)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    numbers = [None, 0.5, -1e300, 3.0]
    rows = [
        (i, "metric", text, -(2**63), 2**63 - 1, numbers[i % 4], text if i % 2 else None)
        for i, text in enumerate(texts)
    ]
    connection.atomically(lambda: connection.insert(insert, rows))
    assert connection.rows(
        "SELECT activity, kind, name, project, position, number, text FROM activity_value"
        " ORDER BY activity"
    ) == list(rows)
    contents = [
        (i, 1, data, 0, 0, 0, 1, None, None)
        for i, data in enumerate((b"\0\xff" * 16, b"", b'sha256:"\\'))
    ]
    columns = "version, n, digest, size, mode, mtime, stored, package, source"
    marks = ", ".join("?" * 9)
    insert = f"INSERT INTO content ({columns}) VALUES ({marks})"
    connection.atomically(lambda: connection.insert(insert, contents))
    found = connection.rows("SELECT digest FROM content ORDER BY version")
    assert [bytes(row[0]) for row in found] == [one[2] for one in contents]

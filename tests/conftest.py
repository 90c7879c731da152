"""Fixtures of all tests: a PostgreSQL server for each worker, and a browser for each module."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from clew.db import Connection, connect
from clew.prov.graph import Graph

if TYPE_CHECKING:
    import psycopg
    from playwright.sync_api import BrowserContext

# Clew is started thousands of times: it is compiled once, whatever the caller's shell says.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# `make test` tries the same few examples every time, `make test-heavy` many new ones.
settings.register_profile(
    "sample",
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "full", settings.get_profile("sample"), max_examples=400, derandomize=False
)
settings.load_profile("sample")


@pytest.fixture(scope="session", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What in-process tests keep of the user's state, such as the projects that were made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test by the size of a long value, not by the value."""
    return f"{argname}-{len(val)}" if isinstance(val, (str, bytes)) and len(val) > 100 else None


def _binaries() -> Path | None:
    """Where initdb and postgres are: on the path, or where Debian keeps them, newest first."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    homes = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = sorted(homes, key=lambda path: int(path.parts[-3].split(".")[0]))
    return newest[-1].parent if newest else None


def _as_postgres(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root; as root, run it as the user Debian made for it."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket directory of a server of our own, without durability: it ends with the tests."""
    binaries = _binaries()
    if binaries is None:
        pytest.fail("PostgreSQL is not installed: apt install postgresql (make test does it)")
    # A socket's path must be short, and pytest's folders are closed to other users.
    home = Path(f"/tmp/clew-postgres-{os.getpid()}")
    home.mkdir(mode=0o755)
    try:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        data = home / "data"
        initdb = [
            str(binaries / "initdb"),
            "--no-sync",
            "-A",
            "trust",
            "-U",
            "clew",
            "-D",
            str(data),
        ]
        subprocess.run(_as_postgres(initdb), check=True, capture_output=True, cwd=home)
        log = (tmp_path_factory.mktemp("postgres") / "log").open("wb")
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(home),
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "autovacuum": "off",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        server = subprocess.Popen(
            _as_postgres([str(binaries / "postgres"), "-D", str(data), *settings]),
            stdout=log,
            stderr=log,
            cwd=home,
        )
        try:
            _await(str(home), server)
            yield str(home)
        finally:
            # runuser stands between us and the server, so the server's own pid is asked for.
            pidfile = data / "postmaster.pid"
            if pidfile.exists():
                os.kill(
                    int(pidfile.read_text().split()[0]), signal.SIGQUIT
                )  # at once: nothing is kept
            server.wait(timeout=30)
            log.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _await(socket: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    until = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(f"host={socket} user=clew dbname=postgres").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _admin(server: str) -> psycopg.Connection[Any]:
    import psycopg

    address = f"host={server} user=clew dbname=postgres"
    return psycopg.connect(address, autocommit=True, options="-c client_min_messages=warning")


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of a database without a schema, for tests of the schema and of its absence."""
    with closing(_admin(postgres_server)) as server:
        server.execute("DROP SCHEMA IF EXISTS clew CASCADE")
    return f"host={postgres_server} user=clew dbname=postgres"


@pytest.fixture(scope="session")
def _migrated_postgres(postgres_server: str) -> tuple[str, str]:
    """The address of a database with the schema, and the statement that empties its tables.

    Emptying takes a tenth of the time of a migration. Tables that the migration filled stay.
    """
    with closing(_admin(postgres_server)) as server:
        server.execute("CREATE DATABASE migrated")
    address = f"host={postgres_server} user=clew dbname=migrated"
    with connect(Path(), address=address) as connection:
        names = connection.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'clew'")
        tables = [f"clew.{name}" for (name,) in names]
        empty = [t for t in tables if not connection.rows(f"SELECT 1 FROM {t} LIMIT 1")]
    deletions = "".join(f"DELETE FROM {table};" for table in empty)
    return address, f"SET session_replication_role = replica; {deletions}"


@pytest.fixture
def migrated_postgres(_migrated_postgres: tuple[str, str]) -> str:
    """The address of a database whose tables are empty."""
    import psycopg

    address, empty = _migrated_postgres
    with closing(psycopg.connect(address, autocommit=True)) as server:
        server.execute(empty)
    return address


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str | None]:
    """Where an empty database is: tests that use it run on both kinds."""
    address = request.getfixturevalue("migrated_postgres") if request.param == "postgres" else None
    return tmp_path / "graph.db", address


@pytest.fixture
def connection(database: tuple[Path, str | None]) -> Iterator[Connection]:
    path, address = database
    with connect(path, address=address) as opened:
        yield opened


@pytest.fixture
def graph(connection: Connection) -> Graph:
    return Graph(connection, "p" * 32)


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserContext]:
    """Of a module, not of the worker: while it runs, no other module can use asyncio."""
    from tests.browser import launch_browser

    with launch_browser() as context:
        yield context

"""A server whose database is away says so, and that it may be back; and then it is."""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import httpx2
import psycopg
from tests.driver import Project
from tests.local.processes import children
from tests.local.server import run_server
from tests.local.test_postgres_failures import Server as PostgreSQL
from tests.local.test_postgres_failures import mortal  # noqa: F401 - a fixture
from tests.local.test_server_run_workers import gone
from tests.wait import wait_until


def test_a_database_may_go_and_come_back(tmp_path: Path, mortal: PostgreSQL) -> None:  # noqa: F811
    project = Project(tmp_path, CLEW_GRAPH=mortal.address)
    project.sh("echo recorded")
    with run_server(project) as server, server.client() as client:
        assert client.get("/api/v1/executions/e1").status_code == 200
        mortal.die()
        for _ in range(3):  # also those connections that were idle
            away = client.get("/api/v1/executions/e1")
            assert away.status_code == 503
            assert away.headers["content-type"] == "application/problem+json"
            assert away.json()["code"] == "no-database"
            assert int(away.headers["retry-after"]) > 0
        away = client.get("/apis/v2beta1/runs")
        assert (away.status_code, away.json()["code"]) == (503, 14)  # gRPC's UNAVAILABLE
        assert int(away.headers["retry-after"]) > 0
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
        mortal.start()
        assert client.get("/api/v1/executions/e1").json()["id"] == "e1"
        assert client.get("/apis/v2beta1/runs").status_code == 200


def test_sigterm_ends_a_server_whose_database_hangs(
    tmp_path: Path,
    mortal: PostgreSQL,  # noqa: F811
) -> None:
    """A stopped session holds the locks for which requests, schedules and workers wait."""
    project = Project(tmp_path, CLEW_GRAPH=mortal.address)
    project.sh("echo recorded")

    def ask() -> None:
        with suppress(httpx2.HTTPError), server.client() as client:
            client.get("/api/v1/executions/e1")

    with (
        run_server(project, "--runs", "1") as server,
        psycopg.connect(mortal.address) as session,
        psycopg.connect(mortal.address) as watching,
    ):
        for table in ("execution", "run", "schedule"):
            session.execute(f"LOCK TABLE clew.{table} IN ACCESS EXCLUSIVE MODE")
        backend = session.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            asking = threading.Thread(target=ask)
            asking.start()
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            wait_until("two who wait", lambda: watching.execute(waiting).fetchall()[0][0] >= 2)
            workers = children(server.process.pid)
            server.process.terminate()
            assert server.process.wait(timeout=20) == 0  # a statement would take 30 s
            asking.join()
            wait_until("the end of the workers", lambda: all(map(gone, workers)))
        finally:
            os.kill(backend, signal.SIGCONT)

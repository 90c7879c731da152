"""A server whose database is away says so, and that it may be back; and then it is."""

from __future__ import annotations

from pathlib import Path

from tests.driver import Project
from tests.local.serving import serving
from tests.local.test_robust_postgres import Server as PostgreSQL
from tests.local.test_robust_postgres import mortal  # noqa: F401 - a fixture


def test_a_database_may_go_and_come_back(tmp_path: Path, mortal: PostgreSQL) -> None:  # noqa: F811
    project = Project(tmp_path, CLEW_GRAPH=mortal.address)
    project.sh("echo recorded")
    with serving(project) as server, server.client() as client:
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

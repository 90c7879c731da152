"""Fixtures that choose the database of a project: SQLite or PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.driver import Project

BOTH = ["sqlite", "postgres"]


@pytest.fixture(scope="session")
def shared_graph(postgres_server: str) -> str:
    """The address of a database that many tests use at once: each project has its own rows."""
    import psycopg

    name = "shared"
    with closing(
        psycopg.connect(f"host={postgres_server} user=clew dbname=postgres", autocommit=True)
    ) as server:
        server.execute(f"CREATE DATABASE {name}")
    return f"host={postgres_server} user=clew dbname={name}"


def _chosen(request: pytest.FixtureRequest) -> dict[str, str]:
    """The variables with which a project's graph is there."""
    if request.param == "sqlite":
        return {}
    return {"CLEW_GRAPH": request.getfixturevalue("shared_graph")}


@pytest.fixture(scope="module", params=BOTH)
def graph(request: pytest.FixtureRequest) -> dict[str, str]:
    """A test that asks for it runs once on either database."""
    return _chosen(request)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)]
)
def graph_in_turn(request: pytest.FixtureRequest) -> dict[str, str]:
    """As `graph`, for the many whose point lies elsewhere: PostgreSQL's turn is heavy."""
    return _chosen(request)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs that are recorded are compiled, once."""
    return tmp_path_factory.mktemp("built")


@pytest.fixture
def project(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return Project(tmp_path, **graph_in_turn)

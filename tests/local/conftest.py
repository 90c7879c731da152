"""Fixtures that choose the database of a project, and a server for each worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext
    from tests.local.web_app import WebApp

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
    scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.heavy)]
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


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    """The project of `server`."""
    return Project(tmp_path_factory.mktemp("served"), **graph_in_turn)


@pytest.fixture(scope="session")
def table(served: Project) -> TargetTable:
    """The targets of the proxy of `server`."""
    return TargetTable(served.folder.parent / "targets.toml")


@pytest.fixture(scope="session")
def server(served: Project, table: TargetTable) -> Iterator[Server]:
    """A server that tests share: each has names of its own, and stops nothing."""
    with run_server(served, "--runs", "2", "--targets", str(table.path)) as running:
        yield running


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project of `web_app`: empty. A module that shows something defines its own."""
    return Project(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="module")
def web_options() -> tuple[str, ...]:
    """The options of the server of `web_app`. A module may define its own."""
    return ()


@pytest.fixture(scope="module")
def web_app(
    browser: BrowserContext, web_project: Project, web_options: tuple[str, ...]
) -> Iterator[WebApp]:
    """The web app of a server of the module, opened by a user who is logged in."""
    from tests.local.web_app import open_web_app

    with open_web_app(browser, web_project, *web_options) as app:
        yield app

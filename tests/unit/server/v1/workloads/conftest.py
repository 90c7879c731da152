"""One server for each file's tests."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.unit.server.served_project import BEARER, Served, serve_project


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_project(tmp_path_factory.mktemp("project")) as found:
        yield found


@pytest.fixture(scope="module")
def api(served: Served) -> TestClient:
    """A client with the token."""
    served.client.headers.update(BEARER)
    return served.client

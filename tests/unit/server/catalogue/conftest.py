"""A graph of one project, on either database."""

from __future__ import annotations

import pytest

from clew.db import Connection
from clew.prov.graph import Graph


@pytest.fixture
def graph(connection: Connection) -> Graph:
    return Graph(connection, "p" * 32)

"""Requests with an `Idempotency-Key`: a request that is sent again gets what the first one made.

A browser sends a request again after a lost connection, and a user clicks twice. Neither may start
a second run.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from clew.errors import Conflict
from clew.prov.graph import Graph

_KEPT = 24 * 3600 * 10**9
"""Nanoseconds."""
_DELETE_OLD = "DELETE FROM idempotent_request WHERE project = ? AND at < ?"
_CLAIM = """
INSERT INTO idempotent_request (project, key, request, made, at) VALUES (?, ?, ?, '', ?)
ON CONFLICT DO NOTHING RETURNING key
"""
_STORE = "UPDATE idempotent_request SET made = ? WHERE project = ? AND key = ?"
_GET = "SELECT request, made FROM idempotent_request WHERE project = ? AND key = ?"


def make_once(
    graph: Graph, key: str | None, request: Mapping[str, Any], make: Callable[[], str]
) -> str:
    """The id of what `make` made, now or for an earlier request with this key. `make` is called
    within a transaction. `key`: the route and the client's key; None: always make."""
    if key is None:
        return graph.connection.atomically(make)
    content = json.dumps(request, sort_keys=True, default=str).encode(errors="replace")
    digest = hashlib.sha256(content).hexdigest()
    connection, project = graph.connection, graph.project

    def claim() -> str:
        now = time.time_ns()
        connection.rows(_DELETE_OLD, (project, now - _KEPT))
        if connection.row(_CLAIM, (project, key, digest, now)) is not None:
            made = make()
            connection.rows(_STORE, (made, project, key))
            return made
        row = connection.row(_GET, (project, key))
        if row is None or row[0] != digest:
            raise Conflict(
                "the Idempotency-Key belongs to another request",
                hint="use a new key for each new request",
            )
        return str(row[1])

    return connection.atomically(claim)

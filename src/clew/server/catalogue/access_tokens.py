"""Personal access tokens of a project: their names, hashes and times, never the tokens."""

from dataclasses import dataclass

from clew.errors import Conflict, NotFound
from clew.prov.graph import Graph

ALL, OBSERVE = "all", "observe"
"""What a token permits: everything that tokens do; or to send observations and their content."""
MAX_TOKENS = 100
"""Tokens of a project. Expired ones count until they are deleted."""
_ADD = """
INSERT INTO access_token (id, project, name, hash, created, expires, scope, kubernetes_user)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT = "SELECT count(*) FROM access_token WHERE project = ?"
_LIST = """
SELECT id, name, hash, created, expires, last_used, scope, kubernetes_user
FROM access_token WHERE project = ? ORDER BY created DESC, id
"""
_DELETE = "DELETE FROM access_token WHERE project = ? AND id = ? RETURNING id"
_USE = """
UPDATE access_token SET last_used = ?
WHERE project = ? AND id = ? AND (last_used IS NULL OR last_used < ?)
"""


@dataclass(frozen=True)
class StoredToken:
    """Times are seconds since the epoch."""

    id: str
    name: str
    hash: str
    created: int
    expires: int
    last_used: int | None = None
    scope: str = ALL
    kubernetes_user: str | None = None
    """On a cluster: whose namespaces it reads."""


def add_token(graph: Graph, token: StoredToken) -> None:
    connection = graph.connection

    def add() -> None:
        if connection.rows(_COUNT, (graph.project,))[0][0] >= MAX_TOKENS:
            raise Conflict(
                f"there are {MAX_TOKENS} access tokens already",
                hint="revoke those that are not used anymore",
            )
        values = (token.name, token.hash, token.created, token.expires, token.scope)
        connection.rows(_ADD, (token.id, graph.project, *values, token.kubernetes_user))

    connection.atomically(add)


def list_tokens(graph: Graph) -> list[StoredToken]:
    """All tokens, the newest first, with those that have expired."""
    return [StoredToken(*row) for row in graph.connection.rows(_LIST, (graph.project,))]


def delete_token(graph: Graph, id: str) -> None:  # noqa: A002
    if graph.connection.row(_DELETE, (graph.project, id)) is None:
        raise NotFound(f"there is no access token {id}", hint="list them again")


def note_use(graph: Graph, id: str, at: int) -> None:  # noqa: A002
    """Note when a token was used last."""
    graph.connection.rows(_USE, (at, graph.project, id, at))

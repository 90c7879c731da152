"""What was revoked is known until it expires, and an id is revoked once."""

from clew.prov.graph import Graph
from clew.server.catalogue import revoked_sessions


def test_an_id_is_revoked_once_and_forgotten_when_it_has_expired(graph: Graph) -> None:
    assert revoked_sessions.revoke(graph, "a", 100, now=10)
    assert not revoked_sessions.revoke(graph, "a", 100, now=10)
    assert revoked_sessions.revoke(graph, "b", 200, now=10)
    assert revoked_sessions.list_revoked(graph, now=10) == {"a", "b"}
    assert revoked_sessions.list_revoked(graph, now=100) == {"b"}
    assert revoked_sessions.revoke(graph, "c", 300, now=150)
    assert revoked_sessions.list_revoked(graph, now=0) == {"b", "c"}

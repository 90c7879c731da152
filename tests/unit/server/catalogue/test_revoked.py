"""What was revoked is known until it expires, and an id is revoked once."""

from __future__ import annotations

from clew.prov.graph import Graph
from clew.server.catalogue import revoked


def test_an_id_is_revoked_once_and_forgotten_when_it_has_expired(graph: Graph) -> None:
    assert revoked.add(graph, "a", 100, now=10)
    assert not revoked.add(graph, "a", 100, now=10)
    assert revoked.add(graph, "b", 200, now=10)
    assert revoked.every(graph, now=10) == {"a", "b"}
    assert revoked.every(graph, now=100) == {"b"}
    assert revoked.add(graph, "c", 300, now=150)
    assert revoked.every(graph, now=0) == {"b", "c"}

"""Traffic of several servers in one table, on either database."""

from clew.prov.graph import Graph
from clew.server.catalogue import proxy_traffic
from clew.server.catalogue.proxy_traffic import Traffic


def test_counts_add_up_and_time_only_moves_on(graph: Graph) -> None:
    proxy_traffic.add_traffic(graph, [Traffic("notebook", "me", "a", 200, 1, 0, 10, 20)])
    proxy_traffic.add_traffic(
        graph,
        [Traffic("notebook", "me", "b", 7, 1), Traffic("notebook", "me", "a", 100, 2, 1, 1, 2)],
    )
    assert proxy_traffic.list_traffic(graph) == [
        Traffic("notebook", "me", "a", 200, 3, 1, 11, 22),
        Traffic("notebook", "me", "b", 7, 1),
    ]

"""A network whose latencies are known: sites in space, nodes at sites, and routes with detours."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from clew.placement.latency_table import Endpoint, LatencyTable, location, node
from clew.placement.prediction.measured_pairs import MeasuredPairs


class SyntheticNetwork:
    """Nodes spread evenly over the sites, and one location at each site in turn."""

    def __init__(self, *, sites: int, nodes: int, locations: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        places = random.normal(0, 50, (sites, 4))
        detours = np.exp(random.normal(0, 0.1, (sites, sites)))
        self.ends: list[Endpoint] = [node(f"n{at:03}") for at in range(nodes)]
        self.ends += [location(f"l{at:02}") for at in range(locations)]
        count = len(self.ends)
        site = np.concatenate([np.arange(nodes) * sites // nodes, np.arange(locations)]) % sites
        access = random.exponential(3, count)
        far = np.linalg.norm(places[site][:, None] - places[site], axis=-1)
        far *= (detours * detours.T)[np.ix_(site, site)]
        jitter = np.exp(random.normal(0, 0.02, (count, count)))
        self.ms = (far + access[:, None] + access + 0.2) * jitter * jitter.T
        self.index = {end: at for at, end in enumerate(self.ends)}

    def latency(self, a: Endpoint, b: Endpoint) -> float:
        return float(self.ms[self.index[a], self.index[b]])

    def sample(self, share: float) -> Iterator[tuple[Endpoint, Endpoint]]:
        """About this share of all pairs, the same ones each time."""
        random = np.random.default_rng(1)
        for a, b in combinations(self.ends, 2):
            if random.random() < share:
                yield a, b

    def measure(self, table: LatencyTable, a: Endpoint, b: Endpoint) -> None:
        table.record(a, b, self.latency(a, b), at=0.0)

    def measured(self, share: float) -> LatencyTable:
        table = LatencyTable()
        for a, b in self.sample(share):
            self.measure(table, a, b)
        return table


def snapshot(table: LatencyTable) -> MeasuredPairs:
    return MeasuredPairs.of_table(table, now=0.0)

"""What agents measure: their reports, the locations, and what the agents are asked for."""

import asyncio
import gc
import logging
import time
from collections.abc import Collection, Mapping
from pathlib import Path

import httpx2

from clew.kube.latency.location_config_map import read_locations
from clew.kube.latency.node_latency import PATH, NodeLatency
from clew.kube.scheduler.latencies.latency_reports import LatencyReports
from clew.kube.scheduler.latencies.measurement_requests import MeasurementRequests
from clew.kube.scheduler.list_watch import ListWatch
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.kube.scheduler.wire_format import Node
from clew.placement.prediction.measurement_plan import Request

_LOG = logging.getLogger("clew.scheduler")
_READ_SECONDS = 5.0
_APPLY_SECONDS = 0.5


class MeasuredLatencies:
    def __init__(
        self, http: httpx2.AsyncClient, state: SchedulingState, directory: Path, metrics: Metrics
    ) -> None:
        """`directory`: the mounted ConfigMap of the locations."""
        self._directory = directory
        self._problems: tuple[str, ...] = ()
        self._reports = LatencyReports(state, metrics)
        self._requests = MeasurementRequests(http, metrics)
        self._watch = ListWatch(
            http,
            PATH,
            NodeLatency,
            replace=self._replace,
            change=self._see,
            remove=self._remove,
            failed=metrics.watch_failures.labels("NodeLatency").inc,
        )
        reports = self._reports
        metrics.observe(
            "measurement_age_seconds",
            "Age of the oldest measurement that counts.",
            lambda: reports.oldest_age(now=time.time()),
        )
        metrics.observe(
            "unreachable_pairs",
            "Pairs of a node and a location that did not answer.",
            lambda: sum(map(len, reports.unreachable().values())),
        )
        metrics.observe("locations", "Configured locations.", lambda: len(reports.locations))

    def locations(self) -> frozenset[str]:
        """Those that are configured."""
        return self._reports.locations

    def unreachable(self) -> Mapping[str, Collection[str]]:
        """By node, the locations that do not answer."""
        return self._reports.unreachable()

    def ask(self, requests: Mapping[str, Request]) -> None:
        """Have nodes measure this, besides the locations that they measure of their own accord."""
        self._requests.ask(requests)

    def see_node(self, node: Node) -> None:
        self._requests.see_node(node)
        self._reports.apply(node.metadata.name, now=time.time())

    def forget_node(self, name: str) -> None:
        self._requests.forget_node(name)

    def replace_nodes(self, nodes: list[Node]) -> None:
        self._requests.replace_nodes(nodes)
        for node in nodes:
            self._reports.apply(node.metadata.name, now=time.time())

    async def run(self) -> None:
        await asyncio.gather(self._watch.run(), self._read_locations(), self._apply(), self._ask())

    async def _read_locations(self) -> None:
        while True:
            found = read_locations(self._directory)
            if found.problems != self._problems:
                self._problems = found.problems
                for problem in found.problems:
                    _LOG.warning("%s", problem)
            self._reports.set_locations(found.addresses.keys(), now=time.time())
            await asyncio.sleep(_READ_SECONDS)

    async def _apply(self) -> None:
        while True:
            await asyncio.sleep(_APPLY_SECONDS)
            self._reports.apply_some(now=time.time())

    async def _ask(self) -> None:
        await self._watch.listed.wait()
        await self._requests.run()

    def _replace(self, found: list[NodeLatency]) -> None:
        self._reports.replace(found, now=time.time())
        self._requests.replace(found)
        gc.freeze()

    def _see(self, found: NodeLatency) -> None:
        self._reports.see(found, now=time.time())
        self._requests.see(found)

    def _remove(self, found: NodeLatency) -> None:
        self._reports.forget(found.metadata.name)
        self._requests.forget(found.metadata.name)

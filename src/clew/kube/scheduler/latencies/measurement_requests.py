"""Write what each node is to measure, as the spec of its NodeLatency.

A loop compares the wanted specs with the actual ones and writes the differences, one after another.
A write that failed, or that another client has overwritten, is repeated in the next round.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping

import httpx2

from clew.kube.latency.node_latency import (
    MERGE_PATCH,
    PATH,
    AskedNode,
    NodeLatency,
    Spec,
    make_node_latency,
    make_spec,
)
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.wire_format import Node
from clew.placement.prediction.measurement_plan import Request

_LOG = logging.getLogger("clew.scheduler")
_JSON = {"Content-Type": "application/json"}
_PAUSE_SECONDS = 5.0
_NODES_AT_ONCE = 20
_NOTHING = Request()


class MeasurementRequests:
    def __init__(self, http: httpx2.AsyncClient, metrics: Metrics) -> None:
        self._http = http
        self._metrics = metrics
        self._wanted: Mapping[str, Request] = {}
        self._nodes: dict[str, Node] = {}
        self._present: dict[str, Spec] = {}

    def ask(self, wanted: Mapping[str, Request]) -> None:
        self._wanted = wanted

    def see_node(self, node: Node) -> None:
        self._nodes[node.metadata.name] = node

    def forget_node(self, name: str) -> None:
        self._nodes.pop(name, None)

    def replace_nodes(self, nodes: Iterable[Node]) -> None:
        self._nodes = {node.metadata.name: node for node in nodes}

    def see(self, found: NodeLatency) -> None:
        self._present[found.metadata.name] = found.spec

    def forget(self, name: str) -> None:
        self._present.pop(name, None)

    def replace(self, found: Iterable[NodeLatency]) -> None:
        self._present = {one.metadata.name: one.spec for one in found}

    async def run(self) -> None:
        """Begin when the present NodeLatencies are known."""
        while True:
            for number, name in enumerate(list(self._nodes)):
                await self._correct(name)
                if number % _NODES_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a decision may be waiting
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _correct(self, name: str) -> None:
        node = self._nodes.get(name)
        if node is None:
            return
        spec, present = self._make_spec(name), self._present.get(name)
        if spec == present:
            return
        try:
            if present is None:
                made = make_node_latency(name, node.metadata.uid, spec)
                answer = await self._http.post(PATH, content=json.dumps(made), headers=_JSON)
            else:
                patch = json.dumps(make_spec(spec))
                answer = await self._http.patch(
                    f"{PATH}/{name}", content=patch, headers=MERGE_PATCH
                )
            answer.raise_for_status()
        except (httpx2.HTTPError, OSError) as error:
            self._metrics.requests_written.labels("failed").inc()
            _LOG.warning("cannot ask %s for measurements: %r", name, error)
            return
        self._metrics.requests_written.labels("ok").inc()
        self._present[name] = spec

    def _make_spec(self, name: str) -> Spec:
        wanted = self._wanted.get(name, _NOTHING)
        return Spec(
            locations=list(wanted.locations),
            nodes=[
                AskedNode(peer, node.internal_address)
                for peer in wanted.nodes
                if (node := self._nodes.get(peer)) is not None and node.internal_address
            ],
        )

"""Probe what this node is to measure, and publish what changed.

Everything is in one thread, one probe after another: that bounds what a node sends. What is
published is whole, and only when it changed or is about to become old, so that thousands of nodes
cost the API server little.
"""

import ipaddress
import logging
import math
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from clew.agents.latency.metrics import Metrics
from clew.agents.latency.probes import ProbeFailed, resolve
from clew.agents.latency.targets import Due, Targets
from clew.kube.latency.location_config_map import read_locations
from clew.kube.latency.node_latency import Found, Spec, make_status
from clew.kube.objects import Json
from clew.placement.latency_table import Endpoint, location, node
from clew.placement.measurement.default_locations import choose_own_locations
from clew.placement.measurement.locations import ProbeAddress
from clew.placement.measurement.round_result import (
    MOST_FAILURES,
    PROBES,
    RoundResult,
    sum_up_round,
)

_LOG = logging.getLogger("clew.latency")
_PUBLISH_SECONDS = 300.0
"""How often to publish without a change: readers ignore old measurements."""
_LEAST_PAUSE_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_READ_SECONDS = 5.0
_SPACING_SECONDS = (0.02, 0.1)


class LatencyAgent:
    def __init__(
        self,
        name: str,
        directory: Path,
        publish: Callable[[Json], str | None],
        *,
        interval: float,
        draw: random.Random | None = None,
    ) -> None:
        """`name`: that of the node. `publish` writes a status; it returns why it could not."""
        self.metrics = Metrics()
        self._name = name
        self._directory = directory
        self._publish = publish
        self._draw = draw or random.SystemRandom()
        self._targets = Targets(interval, self._draw)
        self._spec = Spec()
        self._problems: tuple[str, ...] = ()
        self._read_at = -math.inf
        self._changed = False
        self._published_at = -math.inf
        self._publish_after = -math.inf
        self._woken = threading.Event()

    def ask(self, spec: Spec) -> None:
        """Measure this as well; from any thread."""
        self._spec = spec
        self._read_at = -math.inf
        self._woken.set()

    def stop(self) -> None:
        """Wake `run` after its event was set."""
        self._woken.set()

    def run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            self._woken.clear()
            now = time.monotonic()
            if now >= self._read_at + _READ_SECONDS:
                self._read_at = now
                self._set_targets(now)
            due = self._targets.next_due()
            if due is not None and due.due <= now:
                self._probe(due, stopping)
                self._publish_if_due(time.monotonic())
            else:
                self._publish_if_due(now)
                wait = _LEAST_PAUSE_SECONDS if due is None else due.due - time.monotonic()
                self._woken.wait(min(max(wait, 0.0), _LEAST_PAUSE_SECONDS))

    def _set_targets(self, now: float) -> None:
        locations = read_locations(self._directory)
        if locations.problems != self._problems:
            self._problems = locations.problems
            for problem in locations.problems:
                _LOG.warning("%s", problem)
        spec, known = self._spec, locations.addresses
        names = choose_own_locations(self._name, known) | (known.keys() & set(spec.locations))
        wanted: dict[Endpoint, ProbeAddress] = {location(name): known[name] for name in names}
        for asked in spec.nodes:
            if asked.name != self._name and _is_ip(asked.address):
                wanted[node(asked.name)] = ProbeAddress(asked.address)
        self._changed |= self._targets.set(wanted, now=now, at=time.time())
        self.metrics.set_targets(wanted)

    def _probe(self, due: Due, stopping: threading.Event) -> None:
        result = self._probe_round(due, stopping)
        if stopping.is_set():
            return
        self._changed |= self._targets.take(due.end, result, now=time.monotonic(), at=time.time())
        self.metrics.set_latency(due.end, result)

    def _probe_round(self, due: Due, stopping: threading.Event) -> RoundResult | None:
        samples: list[float] = []
        failures = 0
        counted = self.metrics.probes
        try:
            probe = resolve(due.address)
        except ProbeFailed as error:
            counted.labels(due.end.kind, str(error)).inc()
            return None
        while len(samples) + failures < PROBES and failures <= MOST_FAILURES:
            if stopping.wait(self._draw.uniform(*_SPACING_SECONDS)):
                return None
            try:
                samples.append(probe())
                counted.labels(due.end.kind, "ok").inc()
            except ProbeFailed as error:
                failures += 1
                counted.labels(due.end.kind, str(error)).inc()
        return sum_up_round(samples, failures)

    def _publish_if_due(self, now: float) -> None:
        """Publish a change at once, but not before everything was tried once after a start."""
        old = now - self._published_at > _PUBLISH_SECONDS
        if not (self._changed or old) or now < self._publish_after:
            return
        if self._published_at == -math.inf and not self._targets.all_tried():
            return
        failure = self._publish(self._make_status())
        self.metrics.publications.labels("failed" if failure else "ok").inc()
        if failure:
            _LOG.warning("cannot publish the latencies of %s: %s", self._name, failure)
            self._publish_after = now + _RETRY_SECONDS * self._draw.uniform(1, 2)
            return
        self._changed = False
        # Nodes that started together do not stay together.
        self._published_at = now - self._draw.uniform(0, _PUBLISH_SECONDS / 5)
        self._publish_after = now + _LEAST_PAUSE_SECONDS

    def _make_status(self) -> Json:
        found: dict[str, list[Found]] = {"location": [], "node": []}
        unreachable = []
        for end, record in self._targets.records():
            if record.latest is not None:
                at = datetime.fromtimestamp(record.at, UTC)
                measured = Found(end.name, record.latest.ms, at, record.latest.deviation_ms)
                found[end.kind].append(measured)
            elif record.unreachable and end.kind == "location":
                unreachable.append(end.name)
        return make_status(found["location"], found["node"], unreachable)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

"""Write on Pods what became of their request: an event once they are placed, and a condition while
no node is within their limit.

kube-scheduler tries a Pod again when the Pod changes: so a new condition also makes it ask again
after latencies have changed, of which it knows nothing. Reports are written one after another
beside everything else, and never delay a decision. If there are more than can be written, the
newest are left out and counted.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import httpx2

from clew.kube.objects import Json, format_time
from clew.kube.scheduler.wire_format import Pod
from clew.placement.explanation import COMPONENT, Explanation

_LOG = logging.getLogger("clew.scheduler")
CONDITION = "latency.clew.dev/WithinLimit"
_MAX_WAITING = 10_000
_LONGEST_MESSAGE = 1024
"""The longest that Kubernetes accepts."""
_OUTDATED = (httpx2.codes.NOT_FOUND, httpx2.codes.CONFLICT)
"""The Pod is gone, or the event is there already."""


class _Report(NamedTuple):
    method: str
    path: str
    body: Json
    kind: str


class PodReports:
    def __init__(
        self,
        http: httpx2.AsyncClient,
        lost: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`lost` is called for each report that is not written."""
        self._http = http
        self._lost = lost
        self._clock = clock
        self._waiting: asyncio.Queue[_Report] = asyncio.Queue(_MAX_WAITING)

    def explain(self, pod: Pod, said: Explanation) -> None:
        """Say why a Pod is on its node."""
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/events"
        event = make_event(pod, said, self._clock())
        self._add(_Report("POST", path, event, "application/json"))

    def set_condition(self, pod: Pod, message: str, *, within: bool) -> None:
        """Say whether a node is within the limit of a Pod."""
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/status"
        patch = make_condition(pod, message, self._clock(), within=within)
        self._add(_Report("PATCH", path, patch, "application/strategic-merge-patch+json"))

    async def run(self) -> None:
        while True:
            report = await self._waiting.get()
            try:
                answer = await self._http.request(
                    report.method,
                    report.path,
                    content=json.dumps(report.body),
                    headers={"Content-Type": report.kind},
                )
                if answer.status_code not in _OUTDATED:
                    answer.raise_for_status()
            except (httpx2.HTTPError, OSError) as error:
                _LOG.warning("cannot report on a Pod: %r", error)
                self._lost()

    def _add(self, report: _Report) -> None:
        try:
            self._waiting.put_nowait(report)
        except asyncio.QueueFull:
            self._lost()


def make_event(pod: Pod, said: Explanation, at: datetime) -> Json:
    """The event; its name is the same for the same Pod, so that there is one."""
    metadata = pod.metadata
    suffix = hashlib.blake2b(metadata.uid.encode(), digest_size=8).hexdigest()
    time = format_time(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata.name[:230]}.{suffix}",
            "namespace": metadata.namespace,
        },
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
        },
        "type": "Warning" if said.warning else "Normal",
        "reason": said.reason,
        "message": said.message[:_LONGEST_MESSAGE],
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }


def make_condition(pod: Pod, message: str, at: datetime, *, within: bool) -> Json:
    """A patch of the status. It fails if the Pod was deleted and created again."""
    condition = {
        "type": CONDITION,
        "status": str(within),
        "reason": "NodeWithinLimit" if within else "NoNodeWithinLimit",
        "message": message[:_LONGEST_MESSAGE],
        "lastProbeTime": format_time(at),
        "lastTransitionTime": format_time(at),
    }
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}

"""Culling, carried out: look at everything now and then, and end what was idle."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import httpx2

from clew.kube.client import Changed, Client
from clew.kube.cluster_cache import Seen
from clew.kube.controller import event_relay
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.options import Culling
from clew.kube.culling.activity import Asking, Traffic
from clew.kube.culling.idleness import Verdict, decide
from clew.kube.objects import Json, Key, is_leaving, name_of, namespace_of

_LOG = logging.getLogger("clew.operator")
_AT_ONCE = 20
"""Servers that are asked at the same time."""


class Ending:
    def __init__(
        self, client: Client, seen: Seen, asking: Asking, culling: Culling, metrics: Metrics
    ) -> None:
        self._client = client
        self._seen = seen
        self._asking = asking
        self._culling = culling
        self._metrics = metrics
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._culling.period.total_seconds())
            await self.look()

    async def look(self) -> None:
        """At everything, once."""
        traffic = await self._asking.traffic()
        found = [each for each in self._seen.resources() if not is_leaving(each)]
        await asyncio.gather(*(self._look_at(each, traffic) for each in found))

    async def _look_at(self, resource: Json, traffic: Traffic | None) -> None:
        async with self._places:
            try:
                await self._judge(resource, traffic)
            except (Changed, httpx2.HTTPError) as error:
                _LOG.info("%s is looked at again later: %s", name_of(resource), error)
            except Exception:
                _LOG.exception("%s cannot be judged", name_of(resource))

    async def _judge(self, resource: Json, traffic: Traffic | None) -> None:
        pods = self._seen.pods_of(resource)
        pod = pods[-1] if pods else None
        activity = await self._asking.activity(resource, traffic) if pod else None
        now = datetime.now(UTC)
        verdict = decide(resource, pod, activity, now, self._culling)
        if verdict.cull:
            await self._cull(resource, verdict, now)
        elif verdict.annotations:
            await self._client.annotate(resource, verdict.annotations)

    async def _cull(self, resource: Json, verdict: Verdict, now: datetime) -> None:
        kind, place = resource["kind"], (namespace_of(resource), name_of(resource))
        if kind == "Notebook":
            await self._client.annotate(resource, verdict.annotations)
            event = event_relay.said_of(
                resource,
                key=f"culled {now.isoformat()}",
                warning=False,
                reason="Culled",
                message="It was idle for too long, and is stopped; its volumes are kept.",
                first=now,
                last=now,
            )
            await event_relay.write(self._client, event)
        else:
            await self._client.delete(Key(kind, *place), foreground=True)
        self._metrics.culled(resource, now)
        _LOG.info("culled the idle %s %s/%s", kind, *place)

"""Check all resources periodically, and stop or delete the idle ones."""

import asyncio
import logging
from datetime import UTC, datetime

import httpx2

from clew.kube.client import SERVERS, Client, Conflict
from clew.kube.cluster_cache import ClusterCache
from clew.kube.controller import event_relay
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.options import Culling
from clew.kube.culling.activity import ActivityProbe, Traffic
from clew.kube.culling.idleness import Verdict, decide
from clew.kube.objects import Json, Key, is_deleting, name_of, namespace_of

_LOG = logging.getLogger("clew.operator")
_CONCURRENCY = 20
"""Servers that are queried at the same time."""


class Culler:
    def __init__(
        self,
        client: Client,
        cache: ClusterCache,
        probe: ActivityProbe,
        culling: Culling,
        metrics: Metrics,
    ) -> None:
        self._client = client
        self._cache = cache
        self._probe = probe
        self._culling = culling
        self._metrics = metrics
        self._slots = asyncio.Semaphore(_CONCURRENCY)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._culling.period.total_seconds())
            await self.check_all()

    async def check_all(self) -> None:
        traffic = await self._probe.traffic()
        resources = [
            each
            for each in self._cache.resources()
            if each["kind"] in SERVERS and not is_deleting(each)
        ]
        await asyncio.gather(*(self._check(each, traffic) for each in resources))

    async def _check(self, resource: Json, traffic: Traffic | None) -> None:
        async with self._slots:
            try:
                await self._judge(resource, traffic)
            except (Conflict, httpx2.HTTPError) as error:
                _LOG.info("%s is checked again later: %s", name_of(resource), error)
            except Exception:
                _LOG.exception("cannot check %s", name_of(resource))

    async def _judge(self, resource: Json, traffic: Traffic | None) -> None:
        pods = self._cache.pods_of(resource)
        pod = pods[-1] if pods else None
        activity = await self._probe.activity(resource, traffic) if pod else None
        now = datetime.now(UTC)
        verdict = decide(resource, pod, activity, now, self._culling)
        if verdict.cull:
            await self._cull(resource, verdict, now)
        elif verdict.annotations:
            await self._client.annotate(resource, verdict.annotations)

    async def _cull(self, resource: Json, verdict: Verdict, now: datetime) -> None:
        kind, names = resource["kind"], (namespace_of(resource), name_of(resource))
        if kind == "Notebook":
            await self._client.annotate(resource, verdict.annotations)
            event = event_relay.make_event(
                resource,
                key=f"culled {now.isoformat()}",
                warning=False,
                reason="Culled",
                message="It was idle for too long, and is stopped; its volumes are kept.",
                first=now,
                last=now,
            )
            await event_relay.write_event(self._client, event)
        else:
            await self._client.delete(Key(kind, *names), foreground=True)
        self._metrics.culled(resource, now)
        _LOG.info("culled the idle %s %s/%s", kind, *names)

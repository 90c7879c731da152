"""The operator as a process: watches, workers, culling, metrics, from the first to the last."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import kopf
import uvloop
from lightkube.core.exceptions import ApiError
from prometheus_client import start_http_server

from clew.errors import ClewError
from clew.kube.client import RESOURCES, Changed, Client
from clew.kube.cluster_cache import Seen
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.options import Options
from clew.kube.controller.reconciler import Reconciler
from clew.kube.controller.watches import INDICES, Forgetful, children, registry
from clew.kube.controller.work_queue import Queue
from clew.kube.culling.activity import Asking, Source, asking, istio_traffic
from clew.kube.culling.culler import Ending
from clew.kube.objects import Key, name_of, namespace_of
from clew.kube.shared_secret import access_key

_LOG = logging.getLogger("clew.operator")
WORKERS = 16
WAIT = 2.0
SWEEP = 300.0
"""Seconds between two looks for what vanished while no watch was open: kopf lists anew after a
long break, and does not tell of what is no longer there."""


def operate(
    options: Options,
    *,
    metrics_port: int,
    health_port: int,
    traffic: Sequence[Source] = (),
) -> None:
    """Keep the cluster as it is wanted, until told to end. `traffic` are those who know when a
    server was last used."""
    uvloop.run(_Operator(options, traffic).run(metrics_port, health_port))


class _Operator:
    def __init__(self, options: Options, traffic: Sequence[Source]) -> None:
        self._options = options
        self._traffic = list(traffic)
        self._indices: dict[str, Any] = {}
        self._seen = Seen(self._indices)
        self._metrics = Metrics(self._seen)
        self._queue = Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Client | None = None
        self._asking: Asking | None = None

    async def run(self, metrics_port: int, health_port: int) -> None:
        made = registry(self._options, self._queue, self._seen)
        kopf.on.startup(registry=made)(self._start)
        kopf.on.cleanup(registry=made)(self._end)
        for talkative in ("kopf", "httpx2", "aiohttp.access"):
            logging.getLogger(talkative).setLevel(logging.WARNING)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.persistence.diffbase_storage = Forgetful()
        # Of namespaces and kinds that come while it begins to look, kopf may miss some. So it need
        # not look for the former: all are watched, or those that are named, whether they are there
        # or not. And it begins when the latter are there.
        settings.scanning.disabled = not self._options.everywhere
        server, _ = start_http_server(metrics_port, registry=self._metrics.registry)
        try:
            await kopf.operator(
                registry=made,
                settings=settings,
                standalone=True,
                clusterwide=self._options.everywhere,
                namespaces=() if self._options.everywhere else self._options.namespaces,
                liveness_endpoint=f"http://0.0.0.0:{health_port}/healthz",
            )
        finally:
            server.shutdown()
            server.server_close()

    async def _start(self, **given: Any) -> None:
        self._indices.update({name: given[name] for name in INDICES})
        self._client = client = Client(self._options)
        await self._known(client)
        key = await self._access_key()
        options = replace(self._options, own_namespace=client.own_namespace, access_key=key)
        reconciler = Reconciler(client, self._seen, options, self._metrics)
        for _ in range(WORKERS):
            self._task(self._work(reconciler))
        self._task(self._sweep(client))
        if culling := options.culling:
            if culling.prometheus:
                self._traffic.append(istio_traffic(culling.prometheus, culling.idle))
            self._asking = asking(options, culling, self._traffic)
            self._task(Ending(client, self._seen, self._asking, culling, self._metrics).run())

    async def _known(self, client: Client) -> None:
        """Wait until the cluster knows what is to be watched."""
        for kind in (*RESOURCES, *children(self._options)):
            while True:
                try:
                    if await client.knows(kind):
                        break
                    _LOG.warning("waiting: this cluster knows no %s yet", kind)
                except httpx2.HTTPError as error:
                    _LOG.warning("the cluster cannot be asked for its kinds: %s", error)
                await asyncio.sleep(WAIT)

    async def _access_key(self) -> str:
        """Wait until the key can be read: a Pod made without it could not be reached later."""
        while True:
            try:
                return await asyncio.to_thread(access_key)
            except ClewError as error:
                _LOG.warning("waiting: %s (%s)", error.message, error.hint)
            await asyncio.sleep(WAIT)

    async def _end(self, **_: Any) -> None:
        self._queue.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for opened in (self._client, self._asking):
            if opened:
                await opened.close()

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _work(self, reconciler: Reconciler) -> None:
        while True:
            key = await self._queue.take()
            if await self._attempt(key, reconciler):
                self._queue.done(key)
            else:
                self._queue.failed(key)

    async def _sweep(self, client: Client) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            for kind in (*RESOURCES, *children(self._options), "Pod", "PersistentVolumeClaim"):
                try:
                    if not await self._seen.sweep(kind, client.list_uids):
                        continue
                except (ApiError, httpx2.HTTPError) as error:
                    _LOG.warning("%ss cannot be listed: %s", kind, error)
                    continue
                for found in self._seen.resources():
                    self._queue.add(Key(found["kind"], namespace_of(found), name_of(found)))

    async def _attempt(self, key: Key, reconciler: Reconciler) -> bool:
        began = time.monotonic()
        try:
            await reconciler.reconcile(key)
        except Changed as error:
            _LOG.debug("%s %s/%s: %s", *key, error)
            return False
        except (ApiError, httpx2.HTTPError) as error:
            _LOG.warning("%s %s/%s: %s", *key, error)
        except Exception:
            _LOG.exception("%s %s/%s", *key)
        else:
            return True
        finally:
            self._metrics.seconds.labels(key.kind).observe(time.monotonic() - began)
        self._metrics.failed(key)
        return False

"""The operator process: starts and stops the watches, workers, culling and metrics."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import kopf
import uvloop
from lightkube.core.exceptions import ApiError
from prometheus_client import start_http_server

from clew.errors import ClewError
from clew.kube.client import RESOURCES, TRAINING_JOBS, Client, Conflict
from clew.kube.cluster_cache import ClusterCache
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.options import Options
from clew.kube.controller.reconciler import Namespaces, Reconciler
from clew.kube.controller.training_reconciler import TrainingReconciler
from clew.kube.controller.watches import (
    INDICES,
    NoDiffBase,
    make_registry,
    watched_kinds,
)
from clew.kube.controller.work_queue import WorkQueue
from clew.kube.culling.activity import ActivityProbe, TrafficSource, istio_traffic, make_probe
from clew.kube.culling.culler import Culler
from clew.kube.objects import Key, name_of, namespace_of
from clew.kube.scratch.scratch_space import remove_all_abandoned
from clew.kube.shared_secret import access_key

_LOG = logging.getLogger("clew.operator")
WORKERS = 16
RETRY_SECONDS = 2.0
SWEEP_SECONDS = 300.0
"""Seconds between two searches for objects that were deleted while no watch was open: kopf lists
again after a long interruption, and does not report what is missing."""


def run_operator(
    options: Options,
    *,
    metrics_port: int,
    health_port: int,
    traffic: Sequence[TrafficSource] = (),
) -> None:
    """Reconcile until the process is stopped. `traffic`: sources that know when a server was last
    used."""
    uvloop.run(_Operator(options, traffic).run(metrics_port, health_port))


class _Operator:
    def __init__(self, options: Options, traffic: Sequence[TrafficSource]) -> None:
        self._options = options
        self._traffic = list(traffic)
        self._indices: dict[str, Any] = {}
        self._cache = ClusterCache(self._indices)
        self._metrics = Metrics(self._cache)
        self._queue = WorkQueue()
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Client | None = None
        self._probe: ActivityProbe | None = None
        self._jobs: TrainingReconciler | None = None

    async def run(self, metrics_port: int, health_port: int) -> None:
        made = make_registry(self._options, self._queue, self._cache)
        kopf.on.startup(registry=made)(self._start)
        kopf.on.cleanup(registry=made)(self._end)
        for noisy in ("kopf", "httpx2", "aiohttp.access"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.persistence.diffbase_storage = NoDiffBase()
        # kopf may miss namespaces and kinds that are created while it starts. So it does not scan
        # for namespaces: it watches all, or those that are named, whether they exist or not. And
        # it waits in `_start` until all kinds are defined.
        settings.scanning.disabled = not self._options.all_namespaces
        server, _ = start_http_server(metrics_port, registry=self._metrics.registry)
        try:
            await kopf.operator(
                registry=made,
                settings=settings,
                standalone=True,
                clusterwide=self._options.all_namespaces,
                namespaces=() if self._options.all_namespaces else self._options.namespaces,
                liveness_endpoint=f"http://0.0.0.0:{health_port}/healthz",
            )
        finally:
            server.shutdown()
            server.server_close()

    async def _start(self, **given: Any) -> None:
        self._indices.update({name: given[name] for name in INDICES})
        self._client = client = Client(self._options)
        await self._await_kinds(client)
        key = await self._access_key()
        options = replace(self._options, own_namespace=client.own_namespace, access_key=key)
        common = (client, self._cache, options, self._metrics, Namespaces(client))
        self._jobs = jobs = TrainingReconciler(*common, self._queue)
        servers = Reconciler(*common)
        reconcilers: dict[str, Reconciler | TrainingReconciler] = {
            kind: jobs if kind in TRAINING_JOBS else servers for kind in RESOURCES
        }
        for _ in range(WORKERS):
            self._task(self._work(reconcilers))
        self._task(self._sweep(client))
        if options.remove_reproductions:
            self._task(self._remove_reproductions())
        if culling := options.culling:
            if culling.prometheus:
                self._traffic.append(istio_traffic(culling.prometheus, culling.idle))
            self._probe = make_probe(options, culling, self._traffic)
            self._task(Culler(client, self._cache, self._probe, culling, self._metrics).run())

    async def _await_kinds(self, client: Client) -> None:
        """Wait until the cluster knows all kinds that are watched."""
        for kind in watched_kinds(self._options):
            while True:
                try:
                    if await client.knows(kind):
                        break
                    _LOG.warning("waiting: this cluster knows no %s yet", kind)
                except httpx2.HTTPError as error:
                    _LOG.warning("cannot ask the cluster for its kinds: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _access_key(self) -> str:
        """Wait until the key can be read: a Pod made without it could not be reached later."""
        while True:
            try:
                return await asyncio.to_thread(access_key)
            except ClewError as error:
                _LOG.warning("waiting: %s (%s)", error.message, error.hint)
            await asyncio.sleep(RETRY_SECONDS)

    async def _end(self, **_: Any) -> None:
        self._queue.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for opened in (self._jobs, self._client, self._probe):
            if opened:
                await opened.close()

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _work(self, reconcilers: Mapping[str, Reconciler | TrainingReconciler]) -> None:
        while True:
            key = await self._queue.get()
            if await self._attempt(key, reconcilers[key.kind]):
                self._queue.mark_done(key)
            else:
                self._queue.failed(key)

    async def _sweep(self, client: Client) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for kind in watched_kinds(self._options):
                if kind == "Event":
                    continue  # Kubernetes forgets them anyway
                try:
                    if not await self._cache.sweep(kind, client.list_uids):
                        continue
                except (ApiError, httpx2.HTTPError) as error:
                    _LOG.warning("cannot list %ss: %s", kind, error)
                    continue
                for found in self._cache.resources():
                    self._queue.add(Key(found["kind"], namespace_of(found), name_of(found)))

    async def _remove_reproductions(self) -> None:
        """The operator has no keys of S3, so what owns a bucket stays for the next command."""
        while True:
            try:
                for name in await asyncio.to_thread(remove_all_abandoned):
                    _LOG.info("removed %s, which a killed clew reproduce left", name)
            except (ClewError, httpx2.HTTPError) as error:
                _LOG.warning("cannot remove what clew reproduce left: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _attempt(self, key: Key, reconciler: Reconciler | TrainingReconciler) -> bool:
        began = time.monotonic()
        try:
            await reconciler.reconcile(key)
        except Conflict as error:
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

"""The process of `clew scheduler`: watches, events and the HTTP server, in one event loop.

One loop, since a second thread would hold Python's lock for milliseconds while kube-scheduler
waits.
"""

import asyncio
import gc
import logging
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import uvicorn
import uvloop
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError

from clew.errors import Unavailable
from clew.kube.scheduler.extender import Extender
from clew.kube.scheduler.http_app import make_app
from clew.kube.scheduler.latencies.node_latency_watch import MeasuredLatencies
from clew.kube.scheduler.latencies.prediction_loop import Predictions
from clew.kube.scheduler.list_watch import TIMEOUT, ListWatch
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.options import Address, Options
from clew.kube.scheduler.pod_reports import PodReports
from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.kube.scheduler.wire_format import Node, Pod
from clew.placement.request import KIND_LABEL, KINDS

_LOG = logging.getLogger("clew.scheduler")
_REFRESH_SECONDS = 0.5
"""The shortest time between two predictions."""
_KEEP_ALIVE_SECONDS = 120
"""Longer than kube-scheduler keeps an idle connection: if we closed it, a request would fail."""
_STOP_SECONDS = 2
_MAX_CONNECTIONS = 64
_OUR_PODS = {
    "labelSelector": f"{KIND_LABEL} in ({','.join(KINDS)})",
    "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
}


def run_scheduler(options: Options, *, ready: Callable[[str], None]) -> None:
    """Serve until a signal; `ready` is called with the address once it listens."""
    try:
        config = KubeConfig.from_env().get()
        assert config is not None
        http = AsyncClient(config, ConnectionParams(timeout=TIMEOUT))
    except (ConfigError, OSError) as error:
        raise Unavailable(
            f"cannot reach a cluster: {error}", hint="set KUBECONFIG, or run it in a Pod"
        ) from error
    uvloop.run(_Service(options, http).run(ready))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The service handles signals: it may have two servers."""
        yield


class _Service:
    def __init__(self, options: Options, http: httpx2.AsyncClient) -> None:
        self._options = options
        self._http = http
        self._metrics = Metrics()
        self._state = SchedulingState(self._metrics.compare_prediction)
        self._extender = Extender(self._state, self._metrics)
        self._reports = PodReports(http, self._metrics.reports_lost.inc)
        self._latencies: MeasuredLatencies | None = None
        if options.locations is not None:
            self._latencies = MeasuredLatencies(http, self._state, options.locations, self._metrics)
        self._predictions = Predictions(self._state, self._latencies, self._metrics)
        self._nodes = ListWatch(
            http,
            "/api/v1/nodes",
            Node,
            replace=self._replace_nodes,
            change=self._see_node,
            remove=self._remove_node,
            failed=self._metrics.watch_failures.labels("Node").inc,
        )
        self._pods = ListWatch(
            http,
            "/api/v1/pods",
            Pod,
            params=_OUR_PODS,
            replace=self._replace_pods,
            change=self._see_pod,
            remove=self._remove_pod,
            failed=self._metrics.watch_failures.labels("Pod").inc,
        )
        observe, state = self._metrics.observe, self._state
        observe("nodes", "Nodes that are known.", state.count_nodes)
        observe("latencies", "Pairs whose latency is measured.", state.count_latencies)
        observe(
            "assumed_pods",
            "Pods that were placed and not seen on a node yet.",
            state.occupancy.assumed_count,
        )

    async def run(self, ready: Callable[[str], None]) -> None:
        """Raises Unavailable if an address is in use."""
        options = self._options
        tls = _tls_settings(options)
        listening = [(_Server(self._configure(self._extender, **tls)), _bind(options.listen))]
        if options.metrics is not None:
            listening.append((_Server(self._configure(None)), _bind(options.metrics)))
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        serving = [asyncio.create_task(server.serve([listener])) for server, listener in listening]
        work = [self._nodes.run(), self._pods.run(), self._reports.run(), self._refresh()]
        work.append(self._predictions.run())
        if self._latencies is not None:
            work.append(self._latencies.run())
        tasks = [asyncio.create_task(one) for one in (*work, stopped.wait())]
        ready(_describe(options, listening[0][1]))
        done, _ = await asyncio.wait([*tasks, *serving], return_when=asyncio.FIRST_COMPLETED)
        for server, _ in listening:
            server.should_exit = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *serving, return_exceptions=True)
        await self._http.aclose()
        for task in done:
            task.result()  # what should never end has failed

    def _configure(self, extender: Extender | None, **tls: Any) -> uvicorn.Config:
        app = make_app(extender, render_metrics=self._metrics.render, is_ready=self._is_ready)
        return uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            interface="asgi3",
            lifespan="off",
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
            **tls,
        )

    def _is_ready(self) -> bool:
        return self._nodes.listed.is_set() and self._pods.listed.is_set()

    async def _refresh(self) -> None:
        """Let decisions follow what has changed."""
        pause = _REFRESH_SECONDS
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            if self._state.refresh(time.time()):
                while self._state.renew():
                    await asyncio.sleep(0)  # a decision may be waiting
                self._extender.review_waiting()
            pause = max(_REFRESH_SECONDS, 4 * (time.monotonic() - began))
            for pod, _, wait in self._extender.take_waiting():
                self._reports.set_condition(pod, wait.message, within=False)

    def _replace_nodes(self, nodes: list[Node]) -> None:
        self._state.replace_nodes(nodes)
        if self._latencies is not None:
            self._latencies.replace_nodes(nodes)
        self._state.refresh(time.time())
        while self._state.renew():
            pass
        # What was listed stays for long. Searching it for garbage again and again would take
        # many times as long as a decision.
        gc.freeze()

    def _see_node(self, node: Node) -> None:
        self._state.see_node(node)
        if self._latencies is not None:
            self._latencies.see_node(node)

    def _remove_node(self, node: Node) -> None:
        self._state.forget_node(node.metadata.name)
        if self._latencies is not None:
            self._latencies.forget_node(node.metadata.name)

    def _replace_pods(self, pods: list[Pod]) -> None:
        self._state.replace_pods(pods)
        for pod in pods:
            self._tell(pod)

    def _see_pod(self, pod: Pod) -> None:
        self._state.see_pod(pod)
        self._tell(pod)

    def _remove_pod(self, pod: Pod) -> None:
        self._state.forget_pod(pod.metadata.uid)
        self._extender.forget(pod.metadata.uid)

    def _tell(self, pod: Pod) -> None:
        if not pod.spec.node:
            return
        said = self._extender.take_explanation(pod)
        if said is not None:
            self._reports.explain(pod, said)
        if self._extender.end_waiting(pod.metadata.uid):
            message = said.message if said else f"on {pod.spec.node}"
            self._reports.set_condition(pod, message, within=True)


def _bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=128)
    except OSError as error:
        raise Unavailable(f"cannot listen on {address}: {error.strerror}") from error


def _tls_settings(options: Options) -> dict[str, Any]:
    if options.certificate is None:
        return {}
    settings = {"ssl_certfile": options.certificate, "ssl_keyfile": options.key}
    if options.client_ca is None:
        return settings
    return {**settings, "ssl_ca_certs": options.client_ca, "ssl_cert_reqs": ssl.CERT_REQUIRED}


def _describe(options: Options, listener: socket.socket) -> str:
    scheme = "https" if options.certificate else "http"
    return f"{scheme}://{Address(options.listen.host, listener.getsockname()[1])}"

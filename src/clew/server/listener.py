"""`clew server` and `clew up`: open the sockets, start the workers, serve, shut down in order."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import uvicorn

from clew.errors import ClewError
from clew.pipelines.runner.run_types import ClusterOptions
from clew.project_directory import ProjectDirectory
from clew.server.app import build_app
from clew.server.catalogue.pipelines.samples import add_samples
from clew.server.http.client_limits import Limits
from clew.server.http.client_timeouts import make_protocol
from clew.server.log_format import configure
from clew.server.proxy.app_origin import AppOrigin, check_template
from clew.server.proxy.routing import Proxy
from clew.server.proxy.usage import UsageRecorder
from clew.server.proxy.websocket import MAX_MESSAGE_BYTES
from clew.server.repeats.repeat_pool import RepeatPool
from clew.server.run_workers.schedule_loop import ScheduleLoop
from clew.server.run_workers.worker_pool import WorkerPool
from clew.server.server_state import Service
from clew.server.sockets import bracket_ipv6, open_sockets
from clew.server.workload_source import WorkloadSource
from clew.settings import Settings

_LOG = logging.getLogger("clew.server")
_STOP_SECONDS = 4.5
"""How long the server may take to stop, for example while the database does not answer."""
_THREAD_GRACE_SECONDS = 1.0
"""How long threads may go on after everything else has ended."""


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        workers: WorkerPool,
        parts: Sequence[Callable[[], None]],
    ) -> None:
        """`parts`: begin to stop other parts of the server, without waiting."""
        super().__init__(config)
        self._service = service
        self._workers = workers
        self._parts = parts

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End event streams, which would never end, and cancel long-running requests; let the
        other responses finish. uvicorn closes what is left after its grace time."""
        _exit_after(_STOP_SECONDS, self._workers)
        self._workers.stop()
        for begin_to_stop in self._parts:
            begin_to_stop()
        self._service.stopping.set()
        self._service.feeds.end()
        await super().shutdown(sockets)


def serve(
    directory: ProjectDirectory,
    settings: Settings,
    *,
    host: str,
    ports: Sequence[int],
    workloads: WorkloadSource,
    command: str,
    graph: str | None = None,
    runs: int | None = None,
    on_host: bool = False,
    cluster: ClusterOptions | None = None,
    token_secret: str | None = None,
    apps_port: int | None = None,
    apps_origin: str | None = None,
    samples: bool = True,
    spawner_config: Path | None = None,
    plain_log: bool = False,
    started: Callable[[str, str, str | None], None],
) -> None:
    """Serve until a signal ends the server.

    `ports`: it listens on the first one that is free; `workloads`: what runs notebooks,
    TensorBoards and volumes, and what is proxied; it is closed at the end; `command`: as the user
    knows it, for hints; `graph`: a PostgreSQL address that overrides the settings; `runs`: how many
    pipeline runs may run at once; `on_host`: run container components as processes, without their
    images; `cluster`: run tasks there, as Pods; `token_secret`: the Kubernetes Secret that holds
    the token; `apps_port`: the port of the targets, the next one if None; `apps_origin`: the origin
    of the targets as browsers see it; `samples`: add the sample pipelines; `spawner_config`: the
    defaults of the notebook form, instead of the project's; `started`: called once the server
    listens, with its address, the token, and the address of the targets.
    """
    settings = replace(settings, graph=graph or settings.graph)
    token = settings.token or _load_token(directory, token_secret)
    limits = Limits()
    template = None if apps_origin is None else check_template(apps_origin)
    configure(plain=plain_log)
    os.chdir(directory.root)  # relative paths in requests are relative to the project
    has_apps = workloads.resolver is not None
    try:
        sockets = open_sockets(host, ports, apps_port, has_apps=has_apps, command=command)
    except ClewError:
        workloads.close()
        raise
    origin = AppOrigin(sockets[1].getsockname()[1], template) if has_apps else None
    service = Service(directory, settings, token, on_host=on_host, plain_log=plain_log)
    usage = UsageRecorder(service)
    config = uvicorn.Config(
        build_app(service, limits, Proxy(workloads.resolver, usage, token), origin),
        http=make_protocol(limits),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=limits.grace_seconds,
        ws_max_size=MAX_MESSAGE_BYTES,
    )
    service.backend = workloads.backend
    service.spawner_file = spawner_config or service.spawner_file
    count = len(os.sched_getaffinity(0)) if runs is None else runs
    workers = WorkerPool(service, count, on_host=on_host, cluster=cluster)
    schedules = ScheduleLoop(service)
    repeats = RepeatPool(service)
    try:
        workers.start()
        schedules.start()
        repeats.start()
        usage.start()
        workloads.start(usage)
        address = f"http://{bracket_ipv6(host)}:{sockets[0].getsockname()[1]}"
        apps = template or f"http://{bracket_ipv6(host)}:{origin.port}" if origin else None
        server = _Server(config, service, workers, (repeats.stop, workloads.begin_close))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(
                number, server.handle_exit
            )  # before uvicorn runs, which restores them after
        if samples:
            threading.Thread(target=_add_samples, args=(service,), daemon=True).start()
        started(address, token, apps)
        server.run(sockets=sockets)
    finally:
        for listener in sockets:
            listener.close()
        repeats.stop()
        workloads.close()
        usage.close()
        schedules.close()
        workers.close()
        repeats.close()
        service.close()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # everything is closed already
        _exit_after(_THREAD_GRACE_SECONDS, workers)


def _add_samples(service: Service) -> None:
    """In a thread: the server must start even if the database does not answer."""
    try:
        with service.graph() as graph:
            add_samples(graph)
    except ClewError as error:
        _LOG.warning("the sample pipelines were not added: %s", error.message)


def _exit_after(seconds: float, workers: WorkerPool) -> None:
    """Exit then even if a thread hangs, for example in the database or a file system: Python would
    wait for it. This is safe because a server can be killed at any time."""

    def leave() -> None:
        _LOG.warning("some threads did not end: exiting without them")
        workers.kill()
        os._exit(0)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    timer.start()


def _load_token(directory: ProjectDirectory, secret: str | None) -> str:
    local_token = directory.token.read_text().strip()
    if secret is None:
        return local_token
    from clew.kube.shared_secret import get_or_fill

    return get_or_fill(secret, "token", local_token)

"""Listening: from the command to the last answer."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvicorn

from clew.errors import ClewError
from clew.project_directory import Folder
from clew.server.app import build_app
from clew.server.http.client_limits import Limits
from clew.server.http.client_timeouts import make_protocol
from clew.server.log_format import configure
from clew.server.proxy.app_origin import AppOrigin, check_template
from clew.server.proxy.routing import Proxy
from clew.server.proxy.targets import Resolver, TargetFile
from clew.server.proxy.usage import UsageRecorder
from clew.server.proxy.websocket import MAX_MESSAGE_BYTES
from clew.server.run_workers.schedule_loop import ScheduleLoop
from clew.server.run_workers.worker_pool import WorkerPool
from clew.server.service import Service
from clew.settings import Settings

_LOG = logging.getLogger("clew.server")
_LATE = 1.0
"""Seconds that threads have to end after all else has."""
_WAITING = 2048
"""Connections that may wait to be taken."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams would go on for ever: they are told to end, other answers are finished. Long
        work of requests is cancelled; what does not end in time is cut off."""
        self._service.stopping.set()
        self._service.feeds.end()
        await super().shutdown(sockets)


def serve(
    folder: Folder,
    settings: Settings,
    *,
    host: str,
    port: int,
    graph: str | None,
    runs: int | None,
    on_host: bool,
    targets: Path | None,
    on_cluster: bool,
    token_secret: str | None,
    apps_port: int | None,
    apps_origin: str | None,
    started: Callable[[str, str, str | None], None],
) -> None:
    """Answer until told to end; `started` is told the address, the token, and where targets are
    served, once it listens.
    `graph`: a PostgreSQL that is stronger than the one in the settings; `runs`: how many pipelines
    may run at once; `on_host`: container components run as processes, without their images;
    `targets`: a file that names what is reached through this server; `on_cluster`: that is what
    runs on the cluster; `token_secret`: the Secret there that holds the token; `apps_port`: on
    which targets are served, one more than `port` if None; `apps_origin`: how browsers see that."""
    settings = replace(settings, graph=graph or settings.graph)
    token = settings.token or _token(folder, token_secret)
    limits = Limits()
    template = None if apps_origin is None else check_template(apps_origin)
    resolver = _resolver(targets, on_cluster=on_cluster)
    configure()
    os.chdir(folder.root)  # what is asked for by a relative path lies in the project
    listening = [_listen(host, port)]
    origin = None
    if resolver is not None:
        following = port + 1 if 0 < port < 65535 else 0
        wanted = following if apps_port is None else apps_port
        listening.append(_listen(host, wanted, option="--apps-port"))
        origin = AppOrigin(listening[1].getsockname()[1], template)
    service = Service(folder, settings, token)
    records = UsageRecorder(service)
    config = uvicorn.Config(
        build_app(service, limits, Proxy(resolver, records, token), origin),
        http=make_protocol(limits),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=limits.grace_seconds,
        ws_max_size=MAX_MESSAGE_BYTES,
    )
    service.on_host = on_host
    count = len(os.sched_getaffinity(0)) if runs is None else runs
    runners = WorkerPool(service, count, on_host=on_host)
    ticking = ScheduleLoop(service)
    try:
        runners.start()
        ticking.start()
        records.start()
        address = f"http://{_shown(host)}:{listening[0].getsockname()[1]}"
        apps = template or f"http://{_shown(host)}:{origin.port}" if origin else None
        server = _Server(config, service)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, server.handle_exit)  # before it runs, and at its end once more
        started(address, token, apps)
        server.run(sockets=listening)
    finally:
        for one in listening:
            one.close()
        records.close()
        ticking.close()
        runners.close()
        service.close()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # all is in order: nothing is left to end
        _do_not_wait_for_threads()


def _do_not_wait_for_threads() -> None:
    """Python ends only after its threads. One that hangs, in a file system perhaps, is left alone:
    all that must be closed is closed, and every write can be cut off at any moment."""
    main = threading.main_thread()
    left = [t for t in threading.enumerate() if t is not main and not t.daemon]
    if left:
        _LOG.warning("%s threads are still at work: not waiting for them", len(left))
        late = threading.Timer(_LATE, os._exit, (0,))
        late.daemon = True
        late.start()


def _resolver(targets: Path | None, *, on_cluster: bool) -> Resolver | None:
    if on_cluster:
        from clew.server.proxy.cluster_targets import ClusterTargets

        return ClusterTargets()
    return None if targets is None else TargetFile(targets.absolute())


def _token(folder: Folder, secret: str | None) -> str:
    own = folder.token.read_text().strip()
    if secret is None:
        return own
    from clew.kube.shared_secret import get_or_create

    return get_or_create(secret, "token", own)


def _listen(host: str, port: int, *, option: str = "--port") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(_WAITING)
    except OSError as error:
        made.close()
        raise ClewError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint=f"clew server {option} 0"
        ) from error
    return made


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host

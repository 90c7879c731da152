"""Records the usage of targets: counted in memory, stored every few seconds.

Unused notebooks are stopped, so only transferred bytes count as activity, not open connections.
Requests in progress count while they transfer.
"""

import logging
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

from clew.errors import ClewError
from clew.server.catalogue import proxy_traffic
from clew.server.catalogue.proxy_traffic import Traffic
from clew.server.proxy.targets import TargetKey
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server.proxy")
WRITE_SECONDS = 3.0
"""Between two writes."""


class TargetUsage:
    """The traffic of one target."""

    def __init__(self) -> None:
        self.last = 0
        self.requests = self.sockets = self.bytes_in = self.bytes_out = 0

    def begin(self, *, socket: bool) -> None:
        self.last = time.time_ns()
        self.sockets += socket
        self.requests += not socket

    def add_request(self, size: int) -> None:
        self.last = time.time_ns()
        self.bytes_in += size

    def add_response(self, size: int) -> None:
        self.last = time.time_ns()
        self.bytes_out += size


class UsageRecorder:
    """The traffic of all targets. Only the event loop counts; a thread of its own writes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._usage: dict[TargetKey, TargetUsage] = {}
        self._written: dict[TargetKey, Traffic] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic")

    def of(self, key: TargetKey) -> TargetUsage:
        return self._usage.setdefault(key, TargetUsage())

    def last_uses(self) -> dict[TargetKey, datetime]:
        """The time of the last use of each target through this server. Safe from any thread."""
        return {
            key: datetime.fromtimestamp(usage.last / 1e9, UTC)
            for key, usage in list(self._usage.items())
            if usage.last
        }

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, after it has written everything."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        """Write the traffic since the last write; if that fails, the next one includes it."""
        now = {key: _total(key, usage) for key, usage in list(self._usage.items())}
        increments = {
            key: _since(total, self._written.get(key))
            for key, total in now.items()
            if total != self._written.get(key)
        }
        if not increments:
            return
        try:
            with self._service.graph() as graph:
                proxy_traffic.add_traffic(graph, increments.values())
        except ClewError as error:
            _LOG.error("cannot store the traffic: %s", error.message)
        else:
            self._written.update({key: now[key] for key in increments})


def _total(key: TargetKey, usage: TargetUsage) -> Traffic:
    counts = (usage.requests, usage.sockets, usage.bytes_in, usage.bytes_out)
    return Traffic(key.kind, key.namespace, key.name, usage.last, *counts)


def _since(total: Traffic, before: Traffic | None) -> Traffic:
    if before is None:
        return total
    return replace(
        total,
        requests=total.requests - before.requests,
        sockets=total.sockets - before.sockets,
        bytes_in=total.bytes_in - before.bytes_in,
        bytes_out=total.bytes_out - before.bytes_out,
    )

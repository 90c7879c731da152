"""Records the usage of targets: counted in memory, stored every few seconds.

Unused notebooks are stopped, so only transferred bytes count as activity, not open connections.
Requests in progress count while they transfer.
"""

import logging
import threading
import time

from clew.errors import ClewError
from clew.server.catalogue import proxy_traffic
from clew.server.catalogue.proxy_traffic import Traffic
from clew.server.proxy.targets import TargetKey
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server.proxy")
WRITE_SECONDS = 3.0
"""Seconds between two times of writing."""


class TargetUsage:
    """The traffic of one target."""

    def __init__(self) -> None:
        self.last = 0
        self.requests = self.sockets = self.bytes_in = self.bytes_out = 0

    def began(self, *, socket: bool) -> None:
        self.last = time.time_ns()
        self.sockets += socket
        self.requests += not socket

    def asked(self, size: int) -> None:
        self.last = time.time_ns()
        self.bytes_in += size

    def answered(self, size: int) -> None:
        self.last = time.time_ns()
        self.bytes_out += size


class UsageRecorder:
    """Of all targets. Counting is the event loop's alone; writing has a thread of its own."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._seen: dict[TargetKey, TargetUsage] = {}
        self._written: dict[TargetKey, Traffic] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._go, name="traffic")

    def of(self, key: TargetKey) -> TargetUsage:
        return self._seen.setdefault(key, TargetUsage())

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Everything that was counted is written when this returns."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _go(self) -> None:
        while not self._ending.wait(WRITE_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        """What is not written stays counted, and is written the next time."""
        now = {key: _total(key, seen) for key, seen in list(self._seen.items())}
        news = {
            key: _since(total, self._written.get(key))
            for key, total in now.items()
            if total != self._written.get(key)
        }
        if not news:
            return
        try:
            with self._service.graph() as graph:
                proxy_traffic.add_traffic(graph, news.values())
        except ClewError as error:
            _LOG.error("cannot store the traffic: %s", error.message)
        else:
            self._written.update({key: now[key] for key in news})


def _total(key: TargetKey, seen: TargetUsage) -> Traffic:
    counts = (seen.requests, seen.sockets, seen.bytes_in, seen.bytes_out)
    return Traffic(key.kind, key.namespace, key.name, seen.last, *counts)


def _since(total: Traffic, before: Traffic | None) -> Traffic:
    if before is None:
        return total
    return Traffic(
        total.kind,
        total.namespace,
        total.name,
        total.last_activity,
        total.requests - before.requests,
        total.sockets - before.sockets,
        total.bytes_in - before.bytes_in,
        total.bytes_out - before.bytes_out,
    )

"""What is on its way in: how much of it at once, and what keeps it from a sweep.

Content arrives before the events that name it. In between it is leased: to a *transfer*, which
whoever sends gives a name, and which ends when its events are folded, or when nobody has sent
anything for it for a while. Then, or after a restart, a sweep may take what nothing names; the
sender is told what is missing, and sends that again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.exceptions import HTTPException

from clew.store import Store
from clew.store.remotes.pack_import import Taking

MAX_REQUESTS = 8
"""Requests that may be under way at once: each may hold a batch or a pack in memory."""
MAX_TRANSFERS = 64
"""Transfers that may be open at once."""
_IDLE = 600.0
"""Seconds after which nobody will go on with a transfer."""
_AGAIN = "1"
"""Seconds after which who was sent away may come again."""


class _Transfer:
    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.turn = threading.Lock()
        self.used = time.monotonic()


class IngestTransfers:
    """One server's. Safe to use from any thread."""

    def __init__(self, store: Path) -> None:
        self._path = store
        self._slots = threading.BoundedSemaphore(MAX_REQUESTS)
        self._lock = threading.Lock()
        self._transfers: dict[str, _Transfer] = {}

    @contextmanager
    def slot(self) -> Iterator[None]:
        """A place among those under way; without one, 429."""
        if not self._slots.acquire(blocking=False):
            raise _full()
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def taking(self, name: str) -> Iterator[Taking]:
        """Where content of this transfer goes; without a name, of a transfer that ends at once."""
        if not name:
            with Store(self._path) as store:
                yield store.taking()
            return
        while True:
            transfer = self._open(name)
            with transfer.turn:
                if self._transfers.get(name) is not transfer:
                    continue  # it ended while we waited
                try:
                    yield transfer.store.taking()
                finally:
                    transfer.used = time.monotonic()
                    if transfer.store.broken:
                        self._drop(name, transfer)
                return

    def end(self, name: str) -> None:
        """All that was sent in this transfer is named."""
        with self._lock:
            transfer = self._transfers.get(name)
        if transfer is not None:
            with transfer.turn:
                self._drop(name, transfer)

    def _open(self, name: str) -> _Transfer:
        self._drop_idle()
        with self._lock:
            found = self._transfers.get(name)
            if found is None:
                if len(self._transfers) >= MAX_TRANSFERS:
                    raise _full()
                found = self._transfers[name] = _Transfer(self._path)
            return found

    def _drop_idle(self) -> None:
        before = time.monotonic() - _IDLE
        with self._lock:
            idle = [(n, t) for n, t in self._transfers.items() if t.used < before]
        for name, transfer in idle:
            if transfer.turn.acquire(blocking=False):
                try:
                    self._drop(name, transfer)
                finally:
                    transfer.turn.release()

    def _drop(self, name: str, transfer: _Transfer) -> None:
        with self._lock:
            if self._transfers.get(name) is transfer:
                del self._transfers[name]
                transfer.store.close()


def _full() -> HTTPException:
    return HTTPException(429, "too much is under way: come again", headers={"Retry-After": _AGAIN})

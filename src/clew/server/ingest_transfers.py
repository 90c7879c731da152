"""Limits concurrent ingest, and protects arriving content from garbage collection.

Content arrives before the events that refer to it. Until then a *transfer*, named by the client,
holds a lease on it. A transfer ends when its events are ingested, or after it was idle for a while.
After that, or after a restart, garbage collection may remove unreferenced content; the client then
learns what is missing and sends it again.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.exceptions import HTTPException

from clew.store import Store
from clew.store.remotes.pack_transfer import PackImport

MAX_REQUESTS = 8
"""Concurrent ingest requests: each may hold a batch or a pack in memory."""
MAX_TRANSFERS = 64
"""Open transfers."""
_IDLE_SECONDS = 600.0
"""A transfer idle for longer is abandoned."""
_RETRY_AFTER = "1"
"""Seconds, for the Retry-After header."""


class _Transfer:
    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.lock = threading.Lock()
        self.last_used = time.monotonic()


class IngestTransfers:
    """The transfers of one server. Safe to use from any thread."""

    def __init__(self, store: Path) -> None:
        self._path = store
        self._slots = threading.BoundedSemaphore(MAX_REQUESTS)
        self._lock = threading.Lock()
        self._transfers: dict[str, _Transfer] = {}

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count a request; answer 429 if there are too many."""
        if not self._slots.acquire(blocking=False):
            raise _too_many_requests()
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def receive(self, name: str) -> Iterator[PackImport]:
        """Receive content for this transfer; without a name, for one that ends with the request."""
        if not name:
            with Store(self._path) as store:
                yield store.pack_import()
            return
        while True:
            transfer = self._open(name)
            with transfer.lock:
                if self._transfers.get(name) is not transfer:
                    continue  # it was dropped while we waited for its lock
                try:
                    yield transfer.store.pack_import()
                finally:
                    transfer.last_used = time.monotonic()
                    if transfer.store.broken:
                        self._drop(name, transfer)
                return

    def end(self, name: str) -> None:
        """Release the lease: events now refer to all content of this transfer."""
        with self._lock:
            transfer = self._transfers.get(name)
        if transfer is not None:
            with transfer.lock:
                self._drop(name, transfer)

    def _open(self, name: str) -> _Transfer:
        self._drop_idle()
        with self._lock:
            transfer = self._transfers.get(name)
            if transfer is None:
                if len(self._transfers) >= MAX_TRANSFERS:
                    raise _too_many_requests()
                transfer = self._transfers[name] = _Transfer(self._path)
            return transfer

    def _drop_idle(self) -> None:
        deadline = time.monotonic() - _IDLE_SECONDS
        with self._lock:
            idle = [(n, t) for n, t in self._transfers.items() if t.last_used < deadline]
        for name, transfer in idle:
            if transfer.lock.acquire(blocking=False):
                try:
                    self._drop(name, transfer)
                finally:
                    transfer.lock.release()

    def _drop(self, name: str, transfer: _Transfer) -> None:
        with self._lock:
            if self._transfers.get(name) is transfer:
                del self._transfers[name]
                transfer.store.close()


def _too_many_requests() -> HTTPException:
    return HTTPException(
        429, "too many requests: try again later", headers={"Retry-After": _RETRY_AFTER}
    )

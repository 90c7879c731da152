"""How much disk the project takes. What gc would free takes long to find out, so a thread does it
now and then, and the last answer is used meanwhile."""

import shutil
import threading
import time

from clew.api.local.status import measure_disk_usage, measure_store
from clew.documents.project.activities import StorageUse
from clew.errors import ClewError
from clew.server.server_state import Service

_FRESH_SECONDS = 300.0


class StorageMeter:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._reclaimable: int | None = None
        self._measured: float | None = None
        self._measuring = threading.Lock()

    def measure(self) -> StorageUse:
        directory = self._service.directory
        now = time.monotonic()
        is_old = self._measured is None or now - self._measured > _FRESH_SECONDS
        if is_old and self._measuring.acquire(blocking=False):
            self._measured = now
            threading.Thread(target=self._find_reclaimable, name="storage", daemon=True).start()
        return StorageUse(
            bytes=measure_disk_usage(directory.store),
            reclaimable=self._reclaimable,
            free=shutil.disk_usage(directory.path).free,
        )

    def _find_reclaimable(self) -> None:
        try:
            with self._service.project() as project:
                size = measure_store(project)
            if size.reclaimable is not None:
                self._reclaimable = size.reclaimable + size.cached
        except ClewError:
            self._measured = None  # try again with the next request
        finally:
            self._measuring.release()

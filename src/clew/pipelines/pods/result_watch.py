"""Notice that a task has stored its result before Kubernetes says that its Pod has ended.

A node looks at its containers once a second. A task of a second would seem to take twice as long,
and what comes after it would wait without need. So the store is asked for the results of tasks that
have just begun; for others, that second matters little.
"""

import threading
import time
from collections.abc import Callable

from msgspec import Struct

from clew.errors import ClewError
from clew.pipelines.pods.artifact_store import ArtifactStore

_WATCH_SECONDS = 15.0
"""How long after its last news a Pod counts as young."""
_PAUSE_SECONDS = 0.05
_REQUEST_SECONDS = 0.02
"""Between two requests on average, however many results are awaited."""


class _Awaited(Struct, frozen=True):
    until: float
    on_found: Callable[[], None]


class ResultWatch:
    """Safe to use from any thread. One thread asks for all results, one after another."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._awaited: dict[str, _Awaited] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="clew-results", daemon=True)
        self._thread.start()

    def await_result(self, url: str, on_found: Callable[[], None]) -> None:
        """Call `on_found` once if the object appears soon, from a thread that it must not block.
        Called again, it is awaited longer."""
        with self._changed:
            self._awaited[url] = _Awaited(time.monotonic() + _WATCH_SECONDS, on_found)
            self._changed.notify()

    def forget(self, url: str) -> None:
        with self._changed:
            self._awaited.pop(url, None)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while awaited := self._next_round():
            began = time.monotonic()
            for url, one in awaited.items():
                self._look(url, one)
            pause = max(_PAUSE_SECONDS, _REQUEST_SECONDS * len(awaited))
            with self._changed:
                left = pause - (time.monotonic() - began)
                self._changed.wait_for(lambda: self._closed, max(0.0, left))

    def _next_round(self) -> dict[str, _Awaited]:
        """Wait until results are awaited; empty when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._awaited)
            return {} if self._closed else dict(self._awaited)

    def _look(self, url: str, one: _Awaited) -> None:
        try:
            found = self._store.find(url) is not None
        except ClewError:  # who reads the result will see that, too
            found = False
        if found or time.monotonic() > one.until:
            with self._changed:
                if self._awaited.get(url) is not one:
                    return  # forgotten, or awaited longer
                del self._awaited[url]
        if found:
            one.on_found()

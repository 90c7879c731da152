"""A number that changes whenever a notebook, TensorBoard, viewer, volume or event changes.

One watch per kind serves all followers of this server, and only while there are any: a poll of each
list for each open page would load the API server. A watch keeps no objects, only the
resourceVersion of the last one it saw, and asks for metadata only.

The number is the sum of these resourceVersions. Kubernetes counts them up, in the same way for all
replicas of the server, so the number never decreases; after a restart it starts at the present
version of each list, which is not lower. The sum, since watches are not ordered among each other:
a late change of one kind must count although another kind is further.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from clew.errors import ClewError, NotAllowed, NotFound
from clew.kube.backend.rest_client import RestClient
from clew.kube.objects import Json, dig

_LOG = logging.getLogger("clew.server")
KINDS = ("Notebook", "Tensorboard", "PVCViewer", "PersistentVolumeClaim", "PodDefault")
ABOUT = ("Notebook", "Tensorboard", "PVCViewer", "PersistentVolumeClaim")
"""The kinds whose events count. The operator repeats those of Pods on their notebook."""
IDLE_SECONDS = 60.0
"""Watches end when the version was not requested for so long."""
_FIRST_SECONDS = 5.0
"""How long the first one who asks waits for the lists."""
_RETRY_SECONDS = 5.0
_MISSING_SECONDS = 30.0
"""How often a kind is looked for that the cluster does not have, or that may not be watched."""
_PAUSE_SECONDS = 0.5
"""Between two watches, so that one that ends at once does not load the API server."""


@dataclass
class _Watch:
    kind: str
    namespace: str | None
    params: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    """The version of the last change; 0: unknown."""
    position: str = ""
    """The start of the next watch; empty: at a new list."""
    listed: threading.Event = field(default_factory=threading.Event)


class VersionWatch:
    """Safe to use from any thread."""

    def __init__(
        self,
        client: RestClient,
        namespaces: Sequence[str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`namespaces`: those to watch; None is all of them."""
        events = [{"fieldSelector": f"involvedObject.kind={kind}"} for kind in ABOUT]
        self._watches = [
            watch
            for namespace in namespaces
            for watch in (
                *(_Watch(kind, namespace) for kind in KINDS),
                *(_Watch("Event", namespace, params) for params in events),
            )
        ]
        self._client = client
        self._clock = clock
        self._asked = 0.0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def version(self) -> int:
        """The current number. The first one who asks waits until there is one."""
        self._asked = self._clock()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="kubernetes-watches", daemon=True
                )
                self._thread.start()
        end = time.monotonic() + _FIRST_SECONDS
        for watch in self._watches:
            watch.listed.wait(max(0.0, end - time.monotonic()))
        return sum(watch.version for watch in self._watches)

    def _run(self) -> None:
        asyncio.run(self._watch_while_asked())

    async def _watch_while_asked(self) -> None:
        tasks = [asyncio.create_task(self._follow(watch)) for watch in self._watches]
        while (left := self._asked + IDLE_SECONDS - self._clock()) > 0:
            await asyncio.sleep(left)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for watch in self._watches:
            watch.position = ""  # what changes from now on is found by the next list

    async def _follow(self, watch: _Watch) -> None:
        while True:
            try:
                if not watch.position:
                    await self._list(watch)
                watch.listed.set()
                await self._watch(watch)
                await asyncio.sleep(_PAUSE_SECONDS)
            except (NotFound, NotAllowed):
                watch.listed.set()
                await asyncio.sleep(_MISSING_SECONDS)
            except ClewError as error:
                _LOG.warning("cannot watch %s: %s", watch.kind, error)
                watch.listed.set()  # a request need not wait for the cluster
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self, watch: _Watch) -> None:
        args = (watch.kind, watch.namespace, watch.params)
        watch.position = await asyncio.to_thread(self._client.list_version, *args)
        watch.version = max(watch.version, parse_version(watch.position))

    async def _watch(self, watch: _Watch) -> None:
        params = {
            **watch.params,
            "resourceVersion": watch.position,
            "allowWatchBookmarks": "true",
        }
        async with self._client.watch(
            watch.kind, watch.namespace, params, metadata_only=True
        ) as events:
            async for event in events:
                watch.position, changed = read_event(event)
                watch.version = max(watch.version, changed)


def read_event(event: Json) -> tuple[str, int]:
    """The position after an event, and the version of the change; 0 if it is none."""
    if event.get("type") == "ERROR":  # such as 410: the position is too old
        return "", 0
    position = str(dig(event, "object", "metadata", "resourceVersion") or "")
    return position, 0 if event.get("type") == "BOOKMARK" else parse_version(position)


def parse_version(text: str) -> int:
    """Kubernetes promises that they are decimal numbers, and that later ones are greater."""
    return int(text) if text.isdecimal() else 0

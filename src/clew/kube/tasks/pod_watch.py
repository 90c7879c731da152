"""What the API server says about the Pods of one run: one list, and one watch from there on.

The watch may break at any time, and the API server may restart. The next watch begins where the
last one was; if that is too long ago, at a new list, which also tells what has gone meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from clew.errors import ClewError
from clew.kube.backend.rest_client import RestClient
from clew.kube.backend.version_watch import read_event
from clew.kube.objects import Json, name_of

_LOG = logging.getLogger("clew.kube")
_RETRY_SECONDS = 1.0
_PAUSE_SECONDS = 0.2
"""Between two watches, so that one that ends at once does not load the API server."""


class PodWatch:
    """For one event loop."""

    def __init__(
        self,
        client: RestClient,
        namespace: str,
        labels: Mapping[str, str],
        *,
        changed: Callable[[Json], None],
        gone: Callable[[str, Json | None], None],
    ) -> None:
        """`changed` is called with each Pod that is new or has changed; `gone` with the name of
        one that was deleted, and its last state if that is known."""
        self._client = client
        self._namespace = namespace
        self._labels = labels
        self._changed = changed
        self._gone = gone
        self._present: set[str] = set()

    def expect(self, name: str) -> None:
        """This Pod exists now: if the next list lacks it, it is gone."""
        self._present.add(name)

    async def run(self) -> None:
        """Until it is cancelled."""
        position = ""
        while True:
            try:
                position = await self._watch(position or await self._list())
                await asyncio.sleep(_PAUSE_SECONDS)
            except (ClewError, ValueError) as error:  # ValueError: half a line
                _LOG.info("the watch of the Pods in %s broke: %s", self._namespace, error)
                position = ""
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self) -> str:
        before = set(self._present)
        pods, version = await asyncio.to_thread(
            self._client.list_with_version, "Pod", self._namespace, labels=self._labels
        )
        for pod in pods:
            self._present.add(name_of(pod))
            self._changed(pod)
        for name in before - {name_of(pod) for pod in pods}:
            self._present.discard(name)
            self._gone(name, None)
        return version

    async def _watch(self, position: str) -> str:
        params = {
            "labelSelector": ",".join(f"{name}={value}" for name, value in self._labels.items()),
            "resourceVersion": position,
            "allowWatchBookmarks": "true",
        }
        async with self._client.watch("Pod", self._namespace, params) as events:
            async for event in events:
                position, changed = read_event(event)
                if not changed:
                    continue
                pod = event["object"]
                if event["type"] == "DELETED":
                    self._present.discard(name_of(pod))
                    self._gone(name_of(pod), pod)
                else:
                    self._present.add(name_of(pod))
                    self._changed(pod)
        return position

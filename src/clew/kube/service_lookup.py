"""Where the servers of a cluster are: asked of the API when somebody wants to go there.

What was found is believed for some seconds, and as long as the API server does not answer: a
notebook goes on being reached while that is restarted. Only Services that the operator made are
found, and only by the resource they were made for.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

import httpx2
from lightkube import AsyncClient
from lightkube.core.exceptions import ApiError, ConfigError

from clew.errors import ClewError
from clew.kube.client import TYPES
from clew.kube.objects import Key, Object, controller_of, dig, is_leaving
from clew.kube.proxy_route import Way, told
from clew.kube.resources.viewers import child_name

BELIEVED = 5.0
"""Seconds; and what is not there is asked for again at once, since it may be just coming."""
_KEPT = 4096
"""Servers that are remembered, the latest used ones."""
_PATIENCE = httpx2.Timeout(5.0)


@dataclass(frozen=True)
class Found:
    """A server: the address of its Service, and what of a request is changed for it."""

    host: str
    port: int
    way: Way
    uid: str
    """Of the resource that it was made for, as its Service says."""


class Servers:
    """To be asked from one event loop."""

    def __init__(self) -> None:
        self._api: AsyncClient | None = None
        self._known: OrderedDict[Key, tuple[float, Found]] = OrderedDict()
        self._asked: dict[Key, asyncio.Task[Found | None]] = {}

    async def find(self, key: Key) -> Found | None:
        known = self._known.get(key)
        if known is not None and time.monotonic() - known[0] < BELIEVED:
            return known[1]
        if (asked := self._asked.get(key)) is None:
            asked = self._asked[key] = asyncio.create_task(self._look(key))
            asked.add_done_callback(lambda _: self._asked.pop(key, None))
        try:
            return await asyncio.shield(asked)  # others may wait for the same answer
        except (ApiError, httpx2.HTTPError, ConfigError) as error:
            if known is not None:
                return known[1]
            raise ClewError(
                f"the cluster cannot be asked where it is: {error}", hint="try again in a moment"
            ) from error

    async def _look(self, key: Key) -> Found | None:
        found = server_of(key, await self._service(key))
        self._known.pop(key, None)
        if found is not None:
            self._known[key] = time.monotonic(), found
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found

    async def _service(self, key: Key) -> Object | None:
        name = child_name(key.name) if key.kind == "PVCViewer" else key.name
        if self._api is None:
            self._api = AsyncClient(timeout=_PATIENCE)
        try:
            found: Object = await self._api.get(TYPES["Service"], name, namespace=key.namespace)
        except ApiError as error:
            if error.status.code == 404:
                return None
            raise
        return found


def server_of(key: Key, service: Object | None) -> Found | None:
    """None: there is no such Service, or it is not one that was made for this resource."""
    if service is None or is_leaving(service):
        return None
    owner = controller_of(service)
    address = str(dig(service, "spec", "clusterIP") or "None")
    ports = dig(service, "spec", "ports") or ()
    if (owner.get("kind"), owner.get("name")) != (key.kind, key.name) or address == "None":
        return None
    uid = str(owner.get("uid", ""))
    return Found(address, int(ports[0]["port"]), told(service), uid) if ports else None

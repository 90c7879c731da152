"""Look up in the Kubernetes API where a resource is served, or why it is not.

An address is cached for some seconds, and used longer while the API server does not answer: so
notebooks stay reachable while it restarts. Only Services made by the operator are found, and only
by the resource they were made for.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

import httpx2
from lightkube import AsyncClient
from lightkube.core.exceptions import ApiError, ConfigError

from clew.errors import ClewError
from clew.kube.client import TYPES
from clew.kube.objects import Key, Object, controller_of, dig, find_reason, is_deleting
from clew.kube.proxy_route import ProxyRoute, read_route
from clew.kube.resources.viewers import child_name

CACHE_SECONDS = 5.0
"""A Service that does not exist is not cached, since it may be about to be created."""
_CACHE_SIZE = 4096
"""Addresses; the least recently fetched are dropped."""
_TIMEOUT = httpx2.Timeout(5.0)


@dataclass(frozen=True)
class ServerAddress:
    """The address of a Service, and how requests to it are changed."""

    host: str
    port: int
    route: ProxyRoute
    uid: str
    """The uid of the resource that the Service belongs to."""


class ServiceLookup:
    """Use it from one event loop only."""

    def __init__(self) -> None:
        self._api: AsyncClient | None = None
        self._known: OrderedDict[Key, tuple[float, ServerAddress]] = OrderedDict()
        self._pending: dict[Key, asyncio.Task[ServerAddress | None]] = {}

    async def find(self, key: Key) -> ServerAddress | None:
        known = self._known.get(key)
        if known is not None and time.monotonic() - known[0] < CACHE_SECONDS:
            return known[1]
        if (task := self._pending.get(key)) is None:
            task = self._pending[key] = asyncio.create_task(self._fetch(key))
            task.add_done_callback(lambda _: self._pending.pop(key, None))
        try:
            return await asyncio.shield(task)  # other requests may wait for it too
        except (ApiError, httpx2.HTTPError, ConfigError) as error:
            if known is not None:
                return known[1]
            raise ClewError(
                f"the Kubernetes API does not answer: {error}", hint="try again in a moment"
            ) from error

    async def explain(self, key: Key) -> str | None:
        """Why a resource does not respond; None: it is ready, does not exist, or cannot be read."""
        try:
            found: Object = await self._client().get(
                TYPES[key.kind], key.name, namespace=key.namespace
            )
        except (ApiError, httpx2.HTTPError, ConfigError):
            return None
        return find_reason(found)

    def _client(self) -> AsyncClient:
        if self._api is None:
            self._api = AsyncClient(timeout=_TIMEOUT)
        return self._api

    async def _fetch(self, key: Key) -> ServerAddress | None:
        found = read_address(key, await self._service(key))
        self._known.pop(key, None)
        if found is not None:
            self._known[key] = time.monotonic(), found
            if len(self._known) > _CACHE_SIZE:
                self._known.popitem(last=False)
        return found

    async def _service(self, key: Key) -> Object | None:
        name = child_name(key.name) if key.kind == "PVCViewer" else key.name
        try:
            found: Object = await self._client().get(
                TYPES["Service"], name, namespace=key.namespace
            )
        except ApiError as error:
            if error.status.code == 404:
                return None
            raise
        return found


def read_address(key: Key, service: Object | None) -> ServerAddress | None:
    """None: the Service does not exist, is being deleted, or belongs to another resource."""
    if service is None or is_deleting(service):
        return None
    owner = controller_of(service)
    address = str(dig(service, "spec", "clusterIP") or "None")
    ports = dig(service, "spec", "ports") or ()
    if (owner.get("kind"), owner.get("name")) != (key.kind, key.name) or address == "None":
        return None
    uid = str(owner.get("uid", ""))
    return (
        ServerAddress(address, int(ports[0]["port"]), read_route(service), uid) if ports else None
    )

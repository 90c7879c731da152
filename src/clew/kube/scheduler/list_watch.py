"""Follow all objects of one kind: list them, watch from there, and list again after any gap.

Objects are decoded to the few fields that their type has: with thousands of nodes, whole ones would
take most of the time and memory.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Generic, TypeVar

import httpx2
import msgspec

_LOG = logging.getLogger("clew.scheduler")
_PAGE = 500
_WATCH_SECONDS = 300
_RETRY_SECONDS = 1.0
_MAX_LINE = 16 << 20
_FAILURES = (httpx2.HTTPError, msgspec.MsgspecError, OSError)
TIMEOUT = httpx2.Timeout(30.0, connect=5.0, read=_WATCH_SECONDS + 30.0)

T = TypeVar("T")


class _Version(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")
    more: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _Version
    items: list[T]


class _Versioned(msgspec.Struct):
    metadata: _Version = msgspec.field(default_factory=_Version)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Gap(Exception):
    """The watch cannot go on from where it was."""


class ListWatch(Generic[T]):
    def __init__(
        self,
        http: httpx2.AsyncClient,
        path: str,
        decoded: type[T],
        *,
        params: Mapping[str, str] | None = None,
        replace: Callable[[list[T]], None],
        change: Callable[[T], None],
        remove: Callable[[T], None],
        failed: Callable[[], None],
    ) -> None:
        """`replace` gets all objects, after each list; `failed` is called when a watch must be
        begun again after an error."""
        self._http = http
        self._path = path
        self._params = dict(params or {})
        self._page: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Page[decoded])  # type: ignore[valid-type]  # a type at run time
        self._object = msgspec.json.Decoder(decoded)
        self._event = msgspec.json.Decoder(_Event)
        self._version = msgspec.json.Decoder(_Versioned)
        self._replace, self._change, self._remove = replace, change, remove
        self._failed = failed
        self.listed = asyncio.Event()

    async def run(self) -> None:
        position = ""
        while True:
            try:
                position = position or await self._list()
                position = await self._watch(position)
            except _Gap:
                position = ""
            except _FAILURES as error:
                _LOG.warning("cannot watch %s: %s", self._path, repr(error))
                self._failed()
                position = ""
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self) -> str:
        found: list[T] = []
        params = {**self._params, "limit": str(_PAGE)}
        while True:
            answer = await self._http.get(self._path, params=params)
            answer.raise_for_status()
            page = self._page.decode(answer.content)
            found += page.items
            if not page.metadata.more:
                break
            params["continue"] = page.metadata.more
        self._replace(found)
        self.listed.set()
        return str(page.metadata.version)

    async def _watch(self, position: str) -> str:
        """Report changes until the API server ends the watch; where the next one begins."""
        params = {
            **self._params,
            "watch": "true",
            "resourceVersion": position,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        async with self._http.stream("GET", self._path, params=params) as answer:
            if answer.status_code == httpx2.codes.GONE:
                raise _Gap
            answer.raise_for_status()
            async for line in _split_lines(answer.aiter_bytes()):
                position = self._take(self._event.decode(line)) or position
        return position

    def _take(self, event: _Event) -> str:
        if event.type == "ERROR":  # such as 410: the position is too old
            raise _Gap
        if event.type in ("ADDED", "MODIFIED"):
            self._change(self._object.decode(event.object))
        elif event.type == "DELETED":
            self._remove(self._object.decode(event.object))
        return self._version.decode(event.object).metadata.version


async def _split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines end with a newline only: text in JSON may contain what else ends a line elsewhere."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line:
                yield line
        if len(rest) > _MAX_LINE:
            raise OSError(f"the API server sent a line of more than {_MAX_LINE} bytes")

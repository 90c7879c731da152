"""Feeds: any number of clients follow a run or a log, and one task polls it for all of them.

One task polls all followed feeds in turn, in one thread; followers wait for its notification. So
polling costs the same for one follower as for a hundred. A feed without followers is dropped.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar

from clew.errors import ClewError

_LOG = logging.getLogger("clew.server")
_POLL_SECONDS = 0.1
KEEPALIVE_SECONDS = 15.0
"""Streams send something at least this often: it reveals closed connections, and keeps proxies from
closing idle ones."""


class Feed(ABC):
    """Something that grows until it is finished."""

    finished = False
    """Nothing more will be added."""

    def __init__(self) -> None:
        self.followers = 0
        self._changed = asyncio.Event()

    @abstractmethod
    def poll(self) -> bool:
        """Read what is new; whether there is anything. Runs in a thread, never concurrently."""

    def notify(self) -> None:
        """Wake all followers."""
        self._changed.set()
        self._changed = asyncio.Event()

    def change(self) -> asyncio.Event:
        """An event set at the next change. Get it before reading the feed, to miss no change."""
        return self._changed


FeedType = TypeVar("FeedType", bound=Feed)


class Feeds:
    """The feeds that are followed now. Use only on the event loop."""

    def __init__(self) -> None:
        self.ending = False
        """The server shuts down: followers must end their streams."""
        self._feeds: dict[Hashable, Feed] = {}
        self._poller: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def follow(self, name: Hashable, make: Callable[[], FeedType]) -> AsyncIterator[FeedType]:
        """Follow the feed of this name; `make` creates it for its first follower."""
        existing = self._feeds.get(name)
        if existing is None:
            existing = self._feeds[name] = make()
        feed: FeedType = existing  # type: ignore[assignment]  # a name always has the same type
        feed.followers += 1
        try:
            if self._poller is None or self._poller.done():
                self._poller = asyncio.create_task(self._poll_feeds())
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers and self._feeds.get(name) is feed:
                del self._feeds[name]

    async def wait(self, change: asyncio.Event) -> bool:
        """Wait for a change; false if it is time for a keepalive instead."""
        try:
            async with asyncio.timeout(KEEPALIVE_SECONDS):
                await change.wait()
        except TimeoutError:
            return False
        return True

    def end(self) -> None:
        """End all streams."""
        self.ending = True
        for feed in self._feeds.values():
            feed.notify()

    async def _poll_feeds(self) -> None:
        while self._feeds and not self.ending:
            active = [feed for feed in self._feeds.values() if not feed.finished]
            for feed in await asyncio.to_thread(_poll, active):
                feed.notify()
            await asyncio.sleep(_POLL_SECONDS)


def _poll(feeds: list[Feed]) -> list[Feed]:
    """The feeds that changed."""
    changed = []
    for feed in feeds:
        try:
            if feed.poll():
                changed.append(feed)
        except (ClewError, OSError) as error:  # such as a lost database, which may come back
            _LOG.warning("cannot poll a feed: %s", error)
    return changed

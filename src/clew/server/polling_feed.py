"""Following what goes on: any number of followers, one look.

What is followed (a run, a log) is a feed. One task looks at all feeds that somebody follows, in
turn, in one thread; followers only wait to be told that there is more. So a hundred of them cost
what one costs, and what is told to each. A feed nobody follows any more is forgotten.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import TypeVar

from clew.errors import ClewError

_LOG = logging.getLogger("clew.server")
_PAUSE = 0.1
"""Seconds between looks."""
KEEPALIVE_SECONDS = 15.0
"""Seconds after which a follower that has heard nothing hears at least that it is still followed:
so those who are gone are noticed, and what stands between does not close the connection."""


class Feed(ABC):
    """Something that grows, until it is over."""

    over = False
    """There will be no more than there is."""

    def __init__(self) -> None:
        self.followers = 0
        self._changed = asyncio.Event()

    @abstractmethod
    def look(self) -> bool:
        """See what is new; whether anything is. Called in a thread, never by two at once."""

    def wake(self) -> None:
        """Tell all who wait."""
        self._changed.set()
        self._changed = asyncio.Event()

    def change(self) -> asyncio.Event:
        """Set at the next change. Take it before looking at what there is, so as to miss none."""
        return self._changed


FeedType = TypeVar("FeedType", bound=Feed)


class Feeds:
    """All that is followed at the moment. Used on the event loop alone."""

    def __init__(self) -> None:
        self.ending = False
        """The server ends: followers are to leave."""
        self._feeds: dict[Hashable, Feed] = {}
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def follow(self, name: Hashable, make: Callable[[], FeedType]) -> AsyncIterator[FeedType]:
        """The feed of this name, as long as it is followed; it was looked at at least once."""
        found = self._feeds.get(name)
        if found is None:
            found = self._feeds[name] = make()
        feed: FeedType = found  # type: ignore[assignment]  # one name is of one kind
        feed.followers += 1
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers and self._feeds.get(name) is feed:
                del self._feeds[name]

    async def changed(self, change: asyncio.Event) -> bool:
        """Wait for a change; false: for a while there was none."""
        try:
            async with asyncio.timeout(KEEPALIVE_SECONDS):
                await change.wait()
        except TimeoutError:
            return False
        return True

    def end(self) -> None:
        """Let every follower go."""
        self.ending = True
        for feed in self._feeds.values():
            feed.wake()

    async def _look(self) -> None:
        while self._feeds and not self.ending:
            going = [feed for feed in self._feeds.values() if not feed.over]
            for feed in await asyncio.to_thread(_changed, going):
                feed.wake()
            await asyncio.sleep(_PAUSE)


def _changed(feeds: list[Feed]) -> list[Feed]:
    found = []
    for feed in feeds:
        try:
            if feed.look():
                found.append(feed)
        except (ClewError, OSError) as error:  # the database is away: it may come back
            _LOG.warning("cannot look at what is followed: %s", error)
    return found

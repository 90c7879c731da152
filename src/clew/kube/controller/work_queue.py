"""Whom to look at next: each once, however often it was named, and never twice at a time.

What was asked for comes before what follows from it: in a crowd, all are made before anything more
is said of those that were made first. What follows comes in many small steps, so it is looked at a
moment later, once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict

from clew.kube.objects import Key

FIRST_DELAY, LONGEST_DELAY = 0.2, 60.0
MOMENT = 0.25


class Queue:
    def __init__(self) -> None:
        self._waiting: asyncio.PriorityQueue[tuple[bool, int, Key]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()
        self._named: dict[Key, bool] = {}
        """Whoever is to be looked at, and whether that can wait for others."""
        self._active: set[Key] = set()
        self._failures: dict[Key, int] = defaultdict(int)
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    def add(self, key: Key, *, can_wait: bool = False) -> None:
        """Look at it soon; when it is being looked at just now, once more afterwards."""
        if key in self._named:
            return
        self._named[key] = can_wait
        if key not in self._active:
            self._put(key)

    def follow(self, key: Key) -> None:
        """Look at it in a moment, unless that is to happen sooner anyway."""
        soon = asyncio.get_running_loop().time() + MOMENT
        waiting = self._timers.get(key)
        if key not in self._named and (waiting is None or waiting.when() > soon):
            self._later(key, MOMENT)

    async def take(self) -> Key:
        *_, key = await self._waiting.get()
        self._named.pop(key, None)
        self._active.add(key)
        return key

    def done(self, key: Key) -> None:
        self._failures.pop(key, None)
        self._release(key)

    def failed(self, key: Key) -> None:
        """Again, after a while that doubles each time."""
        delay = min(FIRST_DELAY * 2 ** self._failures[key], LONGEST_DELAY)
        self._failures[key] += 1
        self._release(key)
        self._later(key, delay)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    def _later(self, key: Key, delay: float) -> None:
        def due() -> None:
            del self._timers[key]
            self.add(key, can_wait=True)

        if waiting := self._timers.pop(key, None):
            waiting.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(delay, due)

    def _release(self, key: Key) -> None:
        self._active.discard(key)
        if key in self._named:
            self._put(key)

    def _put(self, key: Key) -> None:
        self._waiting.put_nowait((self._named[key], next(self._numbers), key))

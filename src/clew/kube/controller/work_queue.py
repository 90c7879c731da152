"""The resources to reconcile: each once, however often it was added, and never two at a time.

Changes of resources come before changes of their children: so of many new resources, all get their
children before the status of the first ones is updated. Changes of children come in many small
steps, so their resource is reconciled once, a moment later.
"""

import asyncio
import itertools
from collections import defaultdict

from clew.kube.objects import Key

FIRST_DELAY, LONGEST_DELAY = 0.2, 60.0
FOLLOW_DELAY = 0.25
LONGEST_WAIT = 86400.0


class WorkQueue:
    def __init__(self) -> None:
        self._waiting: asyncio.PriorityQueue[tuple[bool, int, Key]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()
        self._queued: dict[Key, bool] = {}
        """The resources to reconcile, and whether each can wait for others."""
        self._active: set[Key] = set()
        self._failures: dict[Key, int] = defaultdict(int)
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._alarms: dict[Key, asyncio.TimerHandle] = {}

    def add(self, key: Key, *, can_wait: bool = False) -> None:
        """Reconcile it soon; if it is being reconciled now, once more afterwards."""
        if key in self._queued:
            return
        self._queued[key] = can_wait
        if key not in self._active:
            self._put(key)

    def follow(self, key: Key) -> None:
        """Reconcile it after `FOLLOW_DELAY`, unless that happens sooner anyway."""
        soon = asyncio.get_running_loop().time() + FOLLOW_DELAY
        waiting = self._timers.get(key)
        if key not in self._queued and (waiting is None or waiting.when() > soon):
            self._later(key, FOLLOW_DELAY)

    def wake(self, key: Key, seconds: float | None) -> None:
        """Reconcile it then, even if nothing changes; replaces what was asked before. None: not."""
        if waiting := self._alarms.pop(key, None):
            waiting.cancel()
        if seconds is not None:
            loop = asyncio.get_running_loop()
            wait = min(max(seconds, 0), LONGEST_WAIT)
            self._alarms[key] = loop.call_later(wait, self._ring, key)

    def _ring(self, key: Key) -> None:
        del self._alarms[key]
        self.add(key)

    async def get(self) -> Key:
        *_, key = await self._waiting.get()
        self._queued.pop(key, None)
        self._active.add(key)
        return key

    def mark_done(self, key: Key) -> None:
        self._failures.pop(key, None)
        self._release(key)

    def failed(self, key: Key) -> None:
        """Try again after a delay that doubles each time."""
        delay = min(FIRST_DELAY * 2 ** self._failures[key], LONGEST_DELAY)
        self._failures[key] += 1
        self._release(key)
        self._later(key, delay)

    def close(self) -> None:
        for timer in (*self._timers.values(), *self._alarms.values()):
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
        if key in self._queued:
            self._put(key)

    def _put(self, key: Key) -> None:
        self._waiting.put_nowait((self._queued[key], next(self._numbers), key))

"""Each is looked at once, and never twice at a time."""

import asyncio

from clew.kube.controller.work_queue import WorkQueue
from clew.kube.objects import Key

A, B = Key("Notebook", "me", "a"), Key("Notebook", "me", "b")


def test_what_is_named_twice_is_looked_at_once() -> None:
    async def go() -> None:
        queue = WorkQueue()
        for key in (A, B, A, A):
            queue.add(key)
        assert [await queue.get(), await queue.get()] == [A, B]
        queue.mark_done(A)
        queue.mark_done(B)
        queue.add(B)
        queue.add(A)
        assert await queue.get() == B

    asyncio.run(go())


def test_what_changes_meanwhile_is_looked_at_afterwards() -> None:
    async def go() -> None:
        queue = WorkQueue()
        queue.add(A)
        assert await queue.get() == A
        queue.add(A)
        queue.add(B)
        assert await queue.get() == B, "A is being looked at"
        queue.mark_done(A)
        assert await queue.get() == A

    asyncio.run(go())


def test_what_failed_is_tried_again() -> None:
    async def go() -> None:
        queue = WorkQueue()
        queue.add(A)
        queue.failed(await queue.get())
        queue.failed(await queue.get())
        assert await queue.get() == A
        queue.close()

    asyncio.run(go())


def test_what_was_asked_for_comes_before_what_follows() -> None:
    async def go() -> None:
        queue = WorkQueue()
        queue.add(A, can_wait=True)
        queue.add(B)
        assert [await queue.get(), await queue.get()] == [B, A]
        queue.add(A, can_wait=True)  # while it is being looked at
        queue.add(B)
        queue.mark_done(A)
        queue.mark_done(B)
        assert [await queue.get(), await queue.get()] == [B, A]

    asyncio.run(go())


def test_what_follows_is_looked_at_once() -> None:
    async def go() -> None:
        queue = WorkQueue()
        queue.follow(A)
        queue.follow(A)
        queue.add(B)
        assert [await queue.get(), await queue.get()] == [B, A]
        queue.mark_done(A)
        queue.mark_done(B)
        queue.follow(A)
        queue.add(A)  # it is to happen anyway
        assert await queue.get() == A
        queue.follow(A)
        queue.mark_done(A)
        assert await queue.get() == A, "it changed while it was looked at"
        for _ in range(9):  # it would be tried again in a minute
            queue.failed(A)
        queue.follow(A)
        assert await asyncio.wait_for(queue.get(), 30) == A, "what it waited for may have come"
        queue.close()

    asyncio.run(go())


def test_a_resource_is_looked_at_again_at_the_time_it_asked_for_last() -> None:
    async def go() -> None:
        queue = WorkQueue()
        queue.wake(A, 3600)
        queue.wake(A, 0)
        assert await queue.get() == A
        queue.mark_done(A)
        queue.wake(A, 0.01)
        queue.wake(A, None)
        queue.wake(B, 0.02)
        assert await queue.get() == B, "A asked for nothing more"
        queue.close()

    asyncio.run(go())

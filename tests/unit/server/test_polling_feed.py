"""Feeds: one look for all who follow, and nobody misses or hears anything twice."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.errors import Busy
from clew.server.polling_feed import Feed, Feeds


@dataclass
class World:
    """What there is to be seen, and how often somebody looked."""

    things: list[int] = field(default_factory=list)
    over: bool = False
    away: bool = False
    looks: int = 0
    made: int = 0


class Seen(Feed):
    def __init__(self, world: World) -> None:
        super().__init__()
        world.made += 1
        self.world = world
        self.things: list[int] = []

    def poll(self) -> bool:
        self.world.looks += 1
        if self.world.away:
            raise Busy("the database is away")
        over, new = self.world.over, self.world.things[len(self.things) :]
        self.things += new
        self.finished = over
        return bool(new) or over


async def follow(feeds: Feeds, world: World, heard: list[int]) -> str:
    async with feeds.follow("it", lambda: Seen(world)) as feed:
        at = 0
        while True:
            change, over = feed.change(), feed.finished
            heard += feed.things[at:]
            at = len(feed.things)
            if over:
                return "over"
            if feeds.ending:
                return "ending"
            await feeds.wait(change)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


def test_all_hear_all_and_the_looks_are_shared() -> None:
    async def main() -> None:
        feeds, world = Feeds(), World()
        heard: list[list[int]] = [[] for _ in range(50)]
        tasks = [asyncio.create_task(follow(feeds, world, one)) for one in heard]
        for number in range(10):
            world.things.append(number)
            await until(lambda: all(len(one) == len(world.things) for one in heard))
        world.over = True
        assert await asyncio.gather(*tasks) == ["over"] * 50
        assert heard == [list(range(10))] * 50
        assert world.made == 1
        assert world.looks < 50 * 10

    asyncio.run(main())


def test_a_feed_without_followers_does_not_poll() -> None:
    async def main() -> None:
        feeds, world = Feeds(), World()
        task = asyncio.create_task(follow(feeds, world, []))
        await until(lambda: world.looks > 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: feeds._poller is not None and feeds._poller.done())
        again = asyncio.create_task(follow(feeds, world, []))
        await until(lambda: world.made == 2)
        world.over = True
        assert await again == "over"

    asyncio.run(main())


def test_who_follows_is_let_go_when_the_server_ends() -> None:
    async def main() -> None:
        feeds, world = Feeds(), World()
        tasks = [asyncio.create_task(follow(feeds, world, [])) for _ in range(3)]
        await until(lambda: world.looks > 0)
        feeds.end()
        assert await asyncio.gather(*tasks) == ["ending"] * 3

    asyncio.run(main())


def test_polling_continues_after_a_database_outage() -> None:
    async def main() -> None:
        feeds, world, heard = Feeds(), World(away=True), []
        task = asyncio.create_task(follow(feeds, world, heard))
        await until(lambda: world.looks > 2)
        world.things.append(7)
        world.over, world.away = True, False
        assert await task == "over"
        assert heard == [7]

    asyncio.run(main())

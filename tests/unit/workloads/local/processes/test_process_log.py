"""What processes printed: bounded, readable from the end, and followed."""

import asyncio
from functools import partial
from pathlib import Path

from clew.workloads.local.processes.process_log import ProcessLog


def test_it_is_bounded_and_keeps_the_end(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "log", max_bytes=1000)
    for number in range(1000):
        log.append(f"line {number}\n".encode())
    kept = log.read()
    assert len(kept) <= 2 * 1010
    assert kept.endswith(b"line 998\nline 999\n")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == len(kept)


def test_the_last_lines(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "log")
    assert log.read() == log.read(5) == b""
    log.append(b"a\nb\nc")
    assert (log.read(2), log.read(0), log.read(9)) == (b"b\nc", b"", b"a\nb\nc")


def test_followers_get_everything_once_also_over_a_rotation(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "log", max_bytes=200)
    log.append(b"first\n")
    expected = b"first\n" + b"".join(f"line {number}\n".encode() for number in range(40))

    def is_complete(got: bytearray) -> bool:
        return len(got) >= len(expected)

    async def follow() -> bytearray:
        got = bytearray()
        numbers = iter(range(40))
        async for chunk in log.follow(None, partial(is_complete, got)):
            got += chunk.data
            for _ in range(5):  # less than one file has: a follower that is too slow may miss some
                number = next(numbers, None)
                if number is not None:
                    log.append(f"line {number}\n".encode())
        return got

    assert asyncio.run(asyncio.wait_for(follow(), 60)) == expected


def test_it_is_for_its_user_only_and_can_be_deleted(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "logs" / "log", max_bytes=3)
    log.append(b"secret\n")
    log.append(b"x")
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "logs").iterdir())
    log.delete()
    assert list((tmp_path / "logs").iterdir()) == []
    log.delete()

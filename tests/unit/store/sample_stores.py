"""Stores with something in them."""

import random
from pathlib import Path

from clew.store import Store


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def packs(path: Path) -> list[Path]:
    return sorted((path / "packs").glob("*.pack"))


def fill(path: Path) -> dict[str, bytes]:
    """Small, middling and large contents, in two packs."""
    contents: dict[str, bytes] = {}
    with Store(path) as store:
        for part in range(2):
            texts = [b"text %d of %d\n" % (i, part) * (i + 1) for i in range(40)]
            for data in (*texts, noise(300_000, part), noise(5 << 20, part + 10)):
                contents[store.put_bytes(data).digest] = data
            store.flush()
    return contents


def check(path: Path, contents: dict[str, bytes]) -> None:
    with Store(path) as store:
        assert store.fsck().problems == []
        for digest, data in contents.items():
            assert b"".join(store.read(digest)) == data


def remove_index(path: Path) -> None:
    """The next Store makes it again from the packs."""
    for file in path.glob("index.db*"):
        file.unlink()

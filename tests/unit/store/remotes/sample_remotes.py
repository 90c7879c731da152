"""Stores with contents of every kind, and transfers to and from a remote."""

import os
import random
from pathlib import Path

from clew.store import Store
from clew.store.remotes import Remote, open_remote
from clew.store.types import parse_digest

Made = dict[str, bytes]


def opened(url: Path | str, **more: object) -> Remote:
    return open_remote(str(url), {}, **more)  # type: ignore[arg-type]


def fill(store: Store, seed: int = 1) -> Made:
    """Contents of every kind: empty, small, of many chunks, with holes; by name."""
    chance = random.Random(seed)
    contents = [b"", b"small", b"x" * 70_000, chance.randbytes(700_000), chance.randbytes(3_000)]
    made = {store.put_bytes(data).digest: data for data in contents}
    hole = store.path.parent / f"hole-{seed}"
    with open(hole, "wb") as file:
        file.write(chance.randbytes(200_000))
        file.seek(30 << 20)
        file.write(b"end")
    made[store.put_file(os.fsencode(hole)).digest] = hole.read_bytes()
    store.flush()
    return made


def send(store: Store, remote: Remote, names: Made, *data: bytes) -> int:
    with store.start_upload(remote, lambda done, total: None) as sending:
        sending.send(store.hold(names))
        for given in data:
            sending.send_bytes(given)
        sending.finish()
        return sending.bytes


def receive(store: Store, remote: Remote, names: Made) -> int:
    receiving = store.start_download(remote, lambda done, total: None)
    receiving.receive(filter(None, map(parse_digest, names)))
    return receiving.bytes

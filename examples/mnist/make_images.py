"""Make up images in the formats of the published ones, a few of them, which are easy to tell apart:

    python make_images.py mnist DIR
    python make_images.py cifar10 DIR

They are grey noise with a bright bar across, whose height tells the kind. The same count of images
is the same bytes each time.
"""

import json
import random
import struct
import sys
import zlib
from pathlib import Path

KINDS = 10


def make_images(count: int, side: int, seed: int) -> tuple[list[bytes], list[int]]:
    """The points of each image, and its kind."""
    chance = random.Random(seed)
    kinds = [number % KINDS for number in range(count)]
    made = []
    for kind in kinds:
        rows = [bytes(chance.randrange(80) for _ in range(side)) for _ in range(side)]
        top = kind * side // KINDS
        rows[top : top + 2] = [bytes([250]) * side] * 2
        made.append(b"".join(rows))
    return made, kinds


def write_mnist(folder: Path) -> None:
    """400 to learn from, 50 to be judged by, of 28 by 28 points."""
    for name, count in (("train", 400), ("t10k", 50)):
        found, kinds = make_images(count, 28, seed=count)
        header = struct.pack(">BBBB3i", 0, 0, 8, 3, count, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(header + b"".join(found))
        header = struct.pack(">BBBBi", 0, 0, 8, 1, count)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(header + bytes(kinds))


def write_cifar10(folder: Path) -> None:
    """300 to learn from, 50 to be judged by, of 32 by 32 points."""
    found, kinds = make_images(350, 32, seed=1)
    (folder / "train_lables.json").write_text(json.dumps(kinds[:300]))
    (folder / "test_lables.json").write_text(json.dumps(kinds[300:]))
    for number in range(5):
        part = found[number * 60 : (number + 1) * 60]
        (folder / f"data_batch_{number + 1}.png").write_bytes(build_png(part))
    (folder / "test_batch.png").write_bytes(build_png(found[300:]))


def build_png(rows: list[bytes]) -> bytes:
    """A picture whose every row is one of these, grey as red, green and blue."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    points = b"".join(b"\0" + bytes(value for value in row for _ in range(3)) for row in rows)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(points)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


WRITERS = {"mnist": write_mnist, "cifar10": write_cifar10}


def write(example: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    WRITERS[example](folder)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))

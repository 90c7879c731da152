"""Clean rows in; a part to learn from and a part to judge by out, the same ones every time."""

from __future__ import annotations

import random
import sys
from pathlib import Path

SEED = 7
HELD_BACK = 0.25


def main(source: Path, train: Path, test: Path) -> None:
    header, *rows = source.read_text().splitlines(keepends=True)
    random.Random(SEED).shuffle(rows)
    cut = int(len(rows) * HELD_BACK)
    test.write_text(header + "".join(rows[:cut]))
    train.write_text(header + "".join(rows[cut:]))
    print(f"split: {len(rows) - cut} rows to learn from, {cut} to judge by")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))

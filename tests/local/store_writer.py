"""A writer to be killed: puts files for ever and says what is flushed, one digest a line.

    python store_writer.py STORE SEED [PACK_BYTES]

A line is written only after the flush that covers it: whatever was read from here must be intact.
"""

import os
import random
import sys
from pathlib import Path

from clew.store import Store
from clew.store.packs import pack_writer


def main() -> None:
    path, seed = Path(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        pack_writer.PACK = int(sys.argv[3])  # small packs: many more moments between two of them
    source = random.Random(seed)
    with Store(path, lease=f"writer-{seed}") as store:
        while True:
            batch = []
            for _ in range(source.randrange(1, 30)):
                size = source.choice([0, 10, 5_000, 70_000, 200_000, 2_000_000])
                data = (
                    source.randbytes(size) if source.random() < 0.5 else b"%d," % size * (size // 8)
                )
                batch.append(store.put_bytes(data).digest)
            store.flush()
            os.write(1, "".join(f"{digest}\n" for digest in batch).encode())


if __name__ == "__main__":
    main()

"""What is big: many files, huge files. `make test-heavy` runs these."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.store import Store

pytestmark = pytest.mark.heavy

MEASURED = """
import os, pathlib, re, sys
from clew.store import Store
with Store(pathlib.Path(sys.argv[1])) as store:
    stored = store.put_file(os.fsencode(sys.argv[2]))
    store.flush()
    store.restore(stored.digest, pathlib.Path(sys.argv[3]), sync=False)
peak = re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())
print(stored.digest, int(peak[1]) * 1024)  # ru_maxrss would count the memory of the test itself
"""


def measured(tmp_path: Path, file: Path) -> tuple[str, int]:
    """Store and restore in a process of its own: the digest, and its peak memory."""
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "s"), str(file), str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    digest, memory = done.stdout.split()
    return digest, int(memory)


def test_a_hundred_thousand_small_files(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    for i in range(100):
        (root / str(i)).mkdir(parents=True)
        for j in range(1000):
            (root / str(i) / str(j)).write_bytes(b"file %d of folder %d\n" % (j, i) * (j % 40))
    files = sorted(path for path in root.rglob("*") if path.is_file())
    with Store(tmp_path / "s") as store:
        first = store.put_files([os.fsencode(path) for path in files])
        before = store.added
        again = store.put_files([os.fsencode(path) for path in files])
        assert [stored.digest for stored in again] == [stored.digest for stored in first]
        store.flush()
        assert store.added >= before
        assert store.fsck().problems == []
        for path, stored in zip(files, first, strict=True):
            assert b"".join(store.read(stored.digest)) == path.read_bytes()


def test_a_sparse_file_of_ten_gigabytes(tmp_path: Path) -> None:
    file = tmp_path / "sparse"
    with open(file, "wb") as out:
        out.seek(5 << 30)
        out.write(b"an island")
        out.truncate(10 << 30)
    _, memory = measured(tmp_path, file)
    assert memory <= 300_000_000
    assert (tmp_path / "out").stat().st_size == 10 << 30
    assert (tmp_path / "out").stat().st_blocks * 512 < 1 << 20
    assert sum(p.stat().st_size for p in (tmp_path / "s").rglob("*")) < 1 << 20


def test_memory_stays_bounded_for_a_file_of_twenty_gigabytes(tmp_path: Path) -> None:
    """An eighth of it random bytes: enough to fill many packs, and disks can bear it."""
    file = tmp_path / "large"
    with open(file, "wb") as out:
        for _ in range(20):
            for _ in range(128):
                out.write(os.urandom(1 << 20))
            out.seek((1 << 30) - (128 << 20), os.SEEK_CUR)
        out.truncate(20 << 30)
    _, memory = measured(tmp_path, file)
    assert memory <= 300_000_000
    assert subprocess.run(["cmp", file, tmp_path / "out"]).returncode == 0

"""fsck: verify every chunk and file, and compare the index with the packs.

Each block is decompressed once and every chunk in it hashed; each file of several chunks is then
hashed as a whole. A pack that is not in the index, left by a crash, is not an error.
"""

import fcntl
import itertools
import os
from pathlib import Path

import blake3

from clew.errors import ClewError, Damaged
from clew.store.content_reader import ContentReader
from clew.store.errors import REBUILD_HINT
from clew.store.index import Index
from clew.store.packs import pack_format
from clew.store.types import CheckReport, Problem, format_digest


def check_store(path: Path, index: Index, reader: ContentReader) -> CheckReport:
    with SweepBlocker(path):
        checking = _Check(path / "packs", index, reader)
        try:
            with index.snapshot():
                checking.run()
        except Damaged as error:  # the index cannot even be read
            checking.problems.append(Problem(f"{error.message}; {REBUILD_HINT}", "index.db"))
        return CheckReport(checking.checked, checking.problems)


class SweepBlocker:
    """Keeps gc from starting; several checks may hold it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path / "sweep"

    def __enter__(self) -> None:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            self._fd = -1  # read-only: no gc is possible
            return
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # a forked child has the descriptor too
            os.close(self._fd)


class _Check:
    def __init__(self, directory: Path, index: Index, reader: ContentReader) -> None:
        self._directory = directory
        self._index = index
        self._reader = reader
        self.checked = 0
        self.problems: list[Problem] = []
        self._good: set[bytes] = set()

    def run(self) -> None:
        for line in self._index.integrity():
            self._report(f"{line}; {REBUILD_HINT}", "index.db")
        names = {number: name for number, name, _ in self._index.packs()}
        in_table = {number: self._pack(name, size) for number, name, size in self._index.packs()}
        blocks = {row[0]: row[1:] for row in self._index.blocks()}
        for block, rows in itertools.groupby(self._index.chunks(), key=lambda row: row[0]):
            chunks = [row[1:] for row in rows]
            if block not in blocks or blocks[block][0] not in names:
                self._report(f"{len(chunks)} chunks refer to an unknown block", "index.db")
                continue
            pack = blocks[block][0]
            self._block(names[pack], blocks[block][1:], chunks, in_table[pack])
        for digest in self._index.files():
            self._file(digest)

    def _report(self, what: str, where: str) -> None:
        self.problems.append(Problem(what, where))

    def _pack(self, name: str, size: int) -> set[bytes] | None:
        """The digests in the pack's own table; None if it cannot be read."""
        path = self._directory / name
        try:
            actual = path.stat().st_size
            if actual != size:
                self._report(f"is {actual} bytes long instead of {size}", name)
            table = pack_format.read_table(path)
        except OSError as error:
            self._report(f"cannot be read: {error.strerror}", name)
            return None
        except Damaged as error:
            self._report(error.message, name)
            return None
        return {chunk.digest for block in table.blocks for chunk in block.chunks}

    def _block(
        self,
        name: str,
        block: tuple[int, int, int, int],
        chunks: list[tuple[bytes, int, int]],
        in_table: set[bytes] | None,
    ) -> None:
        position, stored, length, codec = block
        try:
            data = pack_format.read_block(
                self._directory / name, position=position, stored=stored, length=length, codec=codec
            )
        except (OSError, Damaged) as error:
            self._report(f"{len(chunks)} chunks at {position} cannot be read: {error}", name)
            return
        for digest, start, count in chunks:
            self.checked += 1
            if blake3.blake3(data[start : start + count]).digest() == digest:
                self._good.add(digest)
            else:
                self._report(f"{format_digest(digest)} at {position}+{start} is damaged", name)
            if in_table is not None and digest not in in_table:
                self._report(f"the index has {format_digest(digest)}, the pack does not", name)

    def _file(self, digest: bytes) -> None:
        parts = self._reader.parts(digest)
        bad = {part for part, _ in parts if part != pack_format.HOLE and part not in self._good}
        if bad:
            self._report(
                f"{len(bad)} of its {len(parts)} chunks are missing or damaged",
                format_digest(digest),
            )
            return
        self.checked += 1
        try:
            for _ in self._reader.read(digest):
                pass
        except ClewError as error:
            self._report(error.message, format_digest(digest))

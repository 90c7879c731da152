"""fsck: prove that every byte is what it says, and that the index tells the truth about the packs.

Each block is decompressed once and every chunk in it hashed; each file that is made of several
chunks is then hashed as a whole. A pack that the index does not know (a crash came between) is no
damage.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from pathlib import Path

import blake3

from clew.errors import ClewError, Damaged
from clew.store.content_reader import Reader
from clew.store.index import Index
from clew.store.packs import pack_format
from clew.store.types import Problem, Report, named


def check(path: Path, index: Index, reader: Reader) -> Report:
    with NoSweep(path):
        checking = _Check(path / "packs", index, reader)
        try:
            checking.run()
        except Damaged as error:  # so badly that the index cannot even be read through
            checking.problems.append(Problem(f"{error.message}; rebuild it", "index.db"))
        return Report(checking.checked, checking.problems)


class NoSweep:
    """No sweep begins while this is held; several checks may hold it at once."""

    def __init__(self, path: Path) -> None:
        self._path = path / "sweep"

    def __enter__(self) -> None:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            self._fd = -1  # read-only: nobody can sweep here
            return
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # a child just forked has the descriptor, too
            os.close(self._fd)


class _Check:
    def __init__(self, directory: Path, index: Index, reader: Reader) -> None:
        self._directory = directory
        self._index = index
        self._reader = reader
        self.checked = 0
        self.problems: list[Problem] = []
        self._good: set[bytes] = set()

    def run(self) -> None:
        for line in self._index.integrity():
            self._say(f"{line}; rebuild it", "index.db")
        names = {number: name for number, name, _ in self._index.packs()}
        told = {number: self._pack(name, size) for number, name, size in self._index.packs()}
        blocks = {row[0]: row[1:] for row in self._index.blocks()}
        for block, rows in itertools.groupby(self._index.chunks(), key=lambda row: row[0]):
            chunks = [row[1:] for row in rows]
            if block not in blocks or blocks[block][0] not in names:
                self._say(
                    f"{len(chunks)} chunks are placed in a block it does not know", "index.db"
                )
                continue
            pack = blocks[block][0]
            self._block(names[pack], blocks[block][1:], chunks, told[pack])
        for digest in self._index.files():
            self._file(digest)

    def _say(self, what: str, where: str) -> None:
        self.problems.append(Problem(what, where))

    def _pack(self, name: str, size: int) -> set[bytes] | None:
        """The digests a pack's own table tells of; None when it cannot be read."""
        path = self._directory / name
        try:
            actual = path.stat().st_size
            if actual != size:
                self._say(f"is {actual} bytes long instead of {size}", name)
            table = pack_format.read_table(path)
        except OSError as error:
            self._say(f"cannot be read: {error.strerror}", name)
            return None
        except Damaged as error:
            self._say(error.message, name)
            return None
        return {chunk.digest for block in table.blocks for chunk in block.chunks}

    def _block(
        self,
        name: str,
        block: tuple[int, int, int, int],
        chunks: list[tuple[bytes, int, int]],
        told: set[bytes] | None,
    ) -> None:
        position, stored, length, codec = block
        try:
            data = pack_format.read_block(
                self._directory / name, position=position, stored=stored, length=length, codec=codec
            )
        except (OSError, Damaged) as error:
            self._say(f"{len(chunks)} chunks at {position} cannot be read: {error}", name)
            return
        for digest, start, count in chunks:
            self.checked += 1
            if blake3.blake3(data[start : start + count]).digest() == digest:
                self._good.add(digest)
            else:
                self._say(f"{named(digest)} at {position}+{start} is damaged", name)
            if told is not None and digest not in told:
                self._say(f"the index tells of {named(digest)}, the pack does not", name)

    def _file(self, digest: bytes) -> None:
        parts = self._reader.parts(digest)
        bad = {part for part, _ in parts if part != pack_format.HOLE and part not in self._good}
        if bad:
            self._say(
                f"{len(bad)} of its {len(parts)} chunks are missing or damaged", named(digest)
            )
            return
        self.checked += 1
        try:
            for _ in self._reader.read(digest):
                pass
        except ClewError as error:
            self._say(error.message, named(digest))

# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH104, PTH108
"""Read content. Each chunk is verified before it is returned, each file at its end."""

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import blake3

from clew.errors import Damaged, NoContent
from clew.store.errors import display_path, from_os
from clew.store.index import Index
from clew.store.packs import pack_format
from clew.store.types import format_digest

Check = Callable[[], None]
"""Raises when the work was cancelled."""

_ZEROS = bytes(64 << 10)
_CACHED_BLOCKS = 24  # small files that were stored together are mostly read together


class ContentReader:
    def __init__(self, directory: Path, index: Index) -> None:
        self._directory = directory
        self._index = index
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def parts(self, digest: bytes) -> list[tuple[bytes, int]]:
        """A content as chunks and holes."""
        file = self._index.file(digest)
        if file is not None:
            return pack_format.unpack_parts(file[2])
        size = self._index.chunk_size(digest)
        if size is None:
            raise NoContent(f"the bytes of {format_digest(digest)} are not stored")
        return [(digest, size)]

    def read(self, digest: bytes) -> Iterator[bytes | int]:
        """Buffers, and holes as lengths, verified."""
        parts = self.parts(digest)
        if len(parts) == 1 and parts[0][0] == digest:
            yield self.chunk(digest)
            return
        hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
        for part, length in parts:
            if part == pack_format.HOLE:
                hash_zeros(hasher, length)
                yield length
                continue
            data = self.chunk(part)
            hasher.update(data)
            yield data
        if hasher.digest() != digest:
            raise Damaged(f"{format_digest(digest)} does not have that digest", hint="clew fsck")

    def part(self, digest: bytes, start: int, stop: int) -> Iterator[bytes | int]:
        """As `read`, from byte `start` to before `stop`: only the chunks are verified."""
        at = 0
        for part, length in self.parts(digest):
            low, high = max(start - at, 0), min(stop - at, length)
            if low < high:
                yield high - low if part == pack_format.HOLE else self.chunk(part)[low:high]
            at += length
            if at >= stop:
                return

    def find_damaged(self, digest: bytes) -> list[bytes]:
        """The damaged chunks of a content."""
        damaged: list[bytes] = []
        for part, _ in self.parts(digest):
            if part != pack_format.HOLE:
                try:
                    self.chunk(part)
                except Damaged:
                    damaged.append(part)
        return damaged

    def chunk(self, digest: bytes) -> bytes:
        """Read one chunk. If gc moves it in between, look it up again."""
        where = ""
        for _ in range(5):
            place = self._index.locate(digest)
            if place is None:
                raise Damaged(f"the chunk {format_digest(digest)} is missing", hint="clew fsck")
            where = place.pack
            block = self._blocks.get(place.block)
            if block is None:
                try:
                    block = pack_format.read_block(
                        self._directory / place.pack,
                        position=place.position,
                        stored=place.stored,
                        length=place.length,
                        codec=place.codec,
                    )
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise from_os(error, doing=f"read {place.pack}") from error
                self._blocks[place.block] = block
                if len(self._blocks) > _CACHED_BLOCKS:
                    self._blocks.popitem(last=False)
            data = block[place.start : place.start + place.size]
            if blake3.blake3(data).digest() != digest:
                self._blocks.pop(place.block, None)
                raise Damaged(
                    f"{format_digest(digest)} is damaged in {place.pack}", hint="clew fsck"
                )
            return data
        raise Damaged(f"the pack {where} is missing", hint="clew fsck")


def hash_zeros(hasher: blake3.blake3, length: int, check: Check = lambda: None) -> None:
    """Hash that many zeros. `check` may raise between two pieces."""
    block = bytes(min(length, 16 << 20))
    while length:
        check()
        data = block if length >= len(block) else block[:length]
        hasher.update(data)
        length -= len(data)


def fill_holes(buffers: Iterable[bytes | int]) -> Iterator[bytes]:
    """The same buffers, with holes as zeros."""
    for buffer in buffers:
        if isinstance(buffer, bytes):
            yield buffer
            continue
        zeros = bytes(min(buffer, 1 << 20))
        for at in range(0, buffer, len(zeros)):
            yield zeros[: buffer - at]


def restore_file(
    buffers: Iterable[bytes | int],
    to: bytes,
    *,
    mode: int | None,
    mtime: int | None,
    sync: bool,
) -> None:
    """Write to a draft and rename it, so the file is complete or absent."""
    directory, name = os.path.split(to)
    draft = os.path.join(directory, b".%s.%s" % (name[:200], os.urandom(4).hex().encode()))
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            write_sparse(fd, buffers)
            if mode is not None:
                os.fchmod(fd, mode & 0o7777)
            if mtime is not None:
                os.utime(fd, ns=(mtime, mtime))
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(draft, to)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError):
            raise from_os(error, doing=f"restore to {display_path(to)}") from error
        raise


def write_sparse(fd: int, buffers: Iterable[bytes | int]) -> None:
    """Write the buffers; long runs of zeros become holes."""
    end = 0
    for buffer in buffers:
        if isinstance(buffer, int):
            end += buffer
            continue
        at = written = 0
        while at < len(buffer):  # write the data between runs of zero blocks
            if buffer.startswith(_ZEROS, at):
                _write(fd, buffer[written:at] if at > written else b"", end + written)
                at += len(_ZEROS)
                written = at
            else:
                at += len(_ZEROS)
        if written < len(buffer):
            _write(fd, buffer[written:] if written else buffer, end + written)
        end += len(buffer)
    os.ftruncate(fd, end)


def _write(fd: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        done = os.pwrite(fd, left, at)
        left, at = left[done:], at + done

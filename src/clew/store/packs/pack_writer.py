"""Filling packs: blocks are compressed on threads; packs are synced before they are named.

A block is up to half a megabyte of chunks compressed together, which makes small files cheap and
small. Data that does not compress is stored as it is; a few samples tell, without trying the
whole.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.store.leases import create_locked
from clew.store.packs import pack_format

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BLOCK = 512 << 10
PACK = 64 << 20
LEVEL = 1
_SAMPLE = 8 << 10
_WAITING = 12  # blocks being compressed at once: bounds memory
_context = threading.local()  # a zstd context serves one thread at a time


def compress(data: bytes) -> tuple[int, bytes]:
    """(codec, bytes to store): compressed when that saves at least a thirty-second."""
    if len(data) < 64:
        return pack_format.RAW, data
    zstd = getattr(_context, "zstd", None)
    if zstd is None:
        import zstandard  # late: start-up

        zstd = _context.zstd = zstandard.ZstdCompressor(level=LEVEL)
    if len(data) > 16 * _SAMPLE:
        step = len(data) // 4
        sample = b"".join(data[i : i + _SAMPLE] for i in range(step // 2, len(data), step))
        if len(zstd.compress(sample)) > len(sample) * 31 // 32:
            return pack_format.RAW, data
    packed: bytes = zstd.compress(data)
    return (
        (pack_format.ZSTD, packed)
        if len(packed) < len(data) * 31 // 32
        else (pack_format.RAW, data)
    )


class OpenBlock:
    """A block that is being filled, being compressed, or written."""

    __slots__ = ("_data", "chunks", "files", "length", "stored")

    def __init__(self) -> None:
        self.chunks: list[pack_format.Chunk] = []
        self.files: list[pack_format.FileRecord] = []
        """Records of files that end here: they go into this block's pack, or a later one."""
        self.length = 0
        self.stored: int | None = None
        self._data: list[bytes | memoryview] = []

    def add(self, digest: bytes, data: bytes | memoryview, *, whole: bool) -> None:
        self.chunks.append(pack_format.Chunk(digest, len(data), whole))
        self._data.append(data)
        self.length += len(data)

    def join(self) -> bytes:
        data, self._data = b"".join(self._data), []
        return data


class OpenPack:
    """A pack being written, to a file with a temporary name beside the others."""

    def __init__(self, directory: Path) -> None:
        self.fd, self.draft = create_locked(directory, ".*.part")
        self.table = pack_format.Table([], [])
        self.size = 0
        self.write(pack_format.MAGIC)

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self.fd, left) :]
        self.size += len(data)

    def append(self, block: OpenBlock, codec: int, data: bytes) -> None:
        if block.length:
            row = pack_format.Block(self.size, len(data), block.length, codec, block.chunks)
            self.write(data)
            self.table.blocks.append(row)
        self.table.files.extend(block.files)
        block.stored = len(data)
        block.chunks, block.files = [], []  # the table has them; who holds the block needs them not

    def sync(self) -> None:
        """After this the pack is whole on the disk, whatever happens."""
        self.write(pack_format.encode_table(self.table, position=self.size))
        os.fsync(self.fd)

    def publish(self) -> str:
        """Give the synced pack its name; the directory is synced too."""
        name = self.draft.name[1:].removesuffix(".part") + ".pack"
        self.draft.rename(self.draft.with_name(name))
        directory = os.open(self.draft.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        os.close(self.fd)
        self.fd = -1
        return name

    def discard(self) -> None:
        if self.fd >= 0:
            self.draft.unlink(missing_ok=True)
            os.close(self.fd)
            self.fd = -1


class PackWriter:
    """Takes chunks and file records, gives synced packs to `named` in the order they were filled.

    That order matters: a file's record never comes before its chunks.
    """

    def __init__(self, directory: Path, named: Callable[[OpenPack], None], *, threads: int) -> None:
        self._directory = directory
        self._named = named
        self._threads = threads
        self._block = OpenBlock()
        self._compressing: deque[tuple[OpenBlock, Future[tuple[int, bytes]]]] = deque()
        self._pack: OpenPack | None = None
        self._syncing: deque[tuple[OpenPack, Future[None]]] = deque()
        self._pool: ThreadPoolExecutor | None = None

    def add(self, digest: bytes, data: bytes | memoryview, *, whole: bool) -> OpenBlock:
        """Take a chunk; `data` must stay as it is until its block is full."""
        block = self._block
        block.add(digest, data, whole=whole)
        if block.length >= BLOCK:
            self._seal()
        return block

    def add_file(self, file: pack_format.FileRecord) -> None:
        self._block.files.append(file)

    def submit(self, call: Callable[..., Any], *values: object) -> Future[Any]:
        """Run something on the packer's threads."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # late: start-up

            self._pool = ThreadPoolExecutor(self._threads + 1, thread_name_prefix="clew-store")
        return self._pool.submit(call, *values)

    def finish(self) -> None:
        """Everything taken so far is in packs that are synced and named."""
        if self._block.length or self._block.files:
            if self._pool is None:  # little data: a thread would cost more than it saves
                block, self._block = self._block, OpenBlock()
                self._open().append(block, *compress(block.join()))
            else:
                self._seal()
        self._drain(0)
        self._publish(0)
        if self._pack is not None:
            self._pack.sync()
            self._named(self._pack)
            self._pack = None

    def abandon(self) -> None:
        """Forget what is not named yet."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        for pack in (*(pack for pack, _ in self._syncing), self._pack):
            if pack is not None:
                pack.discard()
        self._syncing.clear()
        self._compressing.clear()
        self._pack = None
        self._block = OpenBlock()

    def _open(self) -> OpenPack:
        if self._pack is None:
            self._pack = OpenPack(self._directory)
        return self._pack

    def _seal(self) -> None:
        block, self._block = self._block, OpenBlock()
        self._compressing.append((block, self.submit(compress, block.join())))
        self._drain(_WAITING)

    def _drain(self, most: int) -> None:
        """Write blocks that are compressed, waiting until at most `most` are left."""
        while self._compressing and (
            len(self._compressing) > most or self._compressing[0][1].done()
        ):
            block, future = self._compressing.popleft()
            pack = self._open()
            pack.append(block, *future.result())
            if pack.size >= PACK:
                self._pack = None
                self._syncing.append((pack, self.submit(pack.sync)))
                self._publish(2)

    def _publish(self, most: int) -> None:
        while len(self._syncing) > most:
            pack, future = self._syncing[0]
            future.result()
            self._named(pack)
            self._syncing.popleft()

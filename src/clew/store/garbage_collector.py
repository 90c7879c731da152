"""gc: mark the needed content and sweep the rest while other processes write.

1. Mark the contents in `live` and those that leases hold.
2. Take the store lock, read the leases again, drop the rest from the index in one transaction, and
   remove unused packs. This needs almost no room, so it works on a full disk.
3. Copy what is left in packs that are at least half empty into new packs, and sync those. Where
   there is no room to copy, free the blocks of these packs that nothing refers to in place (a hole
   in the file), and stop.
4. Take the store lock again. Packs with content that became needed meanwhile stay; the other copied
   packs are replaced by the new ones in one transaction, and removed.

A kill leaves the index before or after a transaction; the next gc removes unused files.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from clew.disk_reserve import NO_ROOM
from clew.errors import Busy
from clew.store.content_reader import ContentReader
from clew.store.errors import from_os
from clew.store.index import Index
from clew.store.leases import StoreLock, begin_sweep, end_sweep, is_abandoned, read_held_digests
from clew.store.packs import pack_format
from clew.store.packs.pack_writer import OpenPack, PackWriter
from clew.store.types import Reclaimed, parse_digest

Live = Iterable[str] | Callable[[], Iterable[str]]
"""The contents to keep, listed after the sweep began: content named later is leased."""
SMALL_PACK = 4 << 20
"""Bytes. Packs below this are merged when there are many of them."""
MANY_SMALL_PACKS = 64


class Sweep:
    def __init__(
        self, path: Path, index: Index, store_lock: StoreLock, reader: ContentReader
    ) -> None:
        self._path = path
        self._directory = path / "packs"
        self._index = index
        self._store_lock = store_lock
        self._reader = reader
        self._copied: list[OpenPack] = []
        self._marked: set[bytes] = set()  # contents and chunks that stay

    def run(self, live: Live, *, dry_run: bool) -> Reclaimed:
        try:
            lock = os.open(self._path / "sweep", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise from_os(error, doing=f"write to {self._path}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return self._run(live, dry_run=dry_run)
        except BlockingIOError as error:
            raise Busy("another gc or fsck is running", hint="try again when it is done") from error
        except OSError as error:
            raise from_os(error, doing=f"write to {self._path}") from error
        finally:
            # A child that another thread forks meanwhile has the descriptor until it executes.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def _run(self, live: Live, *, dry_run: bool) -> Reclaimed:
        leases = self._path / "leases"
        with self._store_lock.exclusive():
            begin_sweep(leases)
        try:
            names = live() if callable(live) else live
            self._mark(raw for name in names if (raw := parse_digest(name)) is not None)
            before = self._usage()
            with self._store_lock.exclusive():
                self._mark(read_held_digests(leases))
                if dry_run:
                    return self._estimate()
                dropped = len(self._dead())
                self._drop(set(), set())
            moving = self._sparse_packs()
            if moving:
                self._compact(moving, leases)
            return Reclaimed(dropped, max(0, before - self._usage()))
        finally:
            for pack in self._copied:
                pack.discard()
            end_sweep(leases)

    # -- mark

    def _mark(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            if digest in self._marked:
                continue
            self._marked.add(digest)
            file = self._index.file(digest)
            if file is not None:
                self._marked.update(part for part, _ in pack_format.unpack_parts(file[2]))

    # -- measure

    def _usage(self) -> int:
        total = 0
        for path in self._directory.iterdir():
            with contextlib.suppress(FileNotFoundError):  # other processes add and remove packs
                found = path.stat()
                total += min(found.st_size, found.st_blocks * 512)  # blocks may be freed in place
        return total

    def _dead(self) -> list[bytes]:
        return [digest for digest in self._index.contents() if digest not in self._marked]

    def _estimate(self) -> Reclaimed:
        """The bytes that would be freed: unused packs, and the unused part of packs that would be
        copied."""
        freed = 0
        for size, needed_bytes in self._weights().values():
            if needed_bytes * 2 <= size:
                freed += size - needed_bytes
        return Reclaimed(len(self._dead()), freed)

    def _weights(self) -> dict[int, tuple[int, int]]:
        """Each pack's size, and how much of it is needed. New packs are ignored."""
        weights = {number: [size, 0] for number, _, size in self._index.packs()}
        for digest, pack, length, stored, total in self._index.shares():
            if digest in self._marked and pack in weights:
                weights[pack][1] += -(-stored * length // max(total, 1))
        for digest, pack, size in self._index.records():
            if digest in self._marked and pack in weights:
                weights[pack][1] += size
        return {
            number: (size, min(size, needed_bytes))
            for number, (size, needed_bytes) in weights.items()
        }

    def _sparse_packs(self) -> set[int]:
        weights = self._weights()
        moving = {n for n, (size, needed_bytes) in weights.items() if 0 < needed_bytes * 2 <= size}
        tiny = [
            n for n, (size, needed_bytes) in weights.items() if needed_bytes and size < SMALL_PACK
        ]
        if len(tiny) >= MANY_SMALL_PACKS:
            moving.update(tiny)
        return moving

    # -- copy

    def _compact(self, moving: set[int], leases: Path) -> None:
        try:
            moved = self._copy(moving)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            with self._store_lock.exclusive():
                self._free_in_place(moving)
            return
        with self._store_lock.exclusive():
            self._mark(read_held_digests(leases))
            self._drop(moving, moved)

    def _free_in_place(self, sparse: set[int]) -> None:
        """Free the blocks that the index does not use; requires the exclusive store lock."""
        names = {number: name for number, name, _ in self._index.packs() if number in sparse}
        needed: dict[int, set[int]] = {number: set() for number in names}
        for _, pack, position, *_ in self._index.blocks():
            if pack in needed:
                needed[pack].add(position)
        for number, name in names.items():
            path = self._directory / name
            for block in pack_format.read_table(path).blocks:
                if block.position not in needed[number]:
                    pack_format.free_block(path, block)

    def _copy(self, moving: set[int]) -> set[bytes]:
        """Copy what is needed of these packs into new ones; synced, not published yet."""
        moved: set[bytes] = set()
        if not moving:
            return moved
        packer = PackWriter(self._directory, self._copied.append, threads=1)
        try:
            for _, digest, whole in self._index.chunks_in(moving):
                if digest in self._marked:
                    packer.add(digest, self._reader.chunk(digest), whole=whole)
                    moved.add(digest)
            for pack in moving:
                for file in self._index.files_of_pack(pack):
                    if file.digest in self._marked:
                        packer.add_file(file)
                        moved.add(file.digest)
            packer.finish()
        except BaseException:
            packer.abandon()
            for made in self._copied:
                made.discard()
            raise
        packer.abandon()
        return moved

    # -- drop, with the exclusive store lock

    def _drop(self, moving: set[int], moved: set[bytes]) -> None:
        needed = [(p, d) for p, d, _ in self._index.chunks_in(moving)]
        needed += [(p, f.digest) for p in moving for f in self._index.files_of_pack(p)]
        # A pack is removed if everything that is needed of it was copied.
        staying = {p for p, d in needed if d in self._marked and d not in moved}
        names = [(pack, pack.publish()) for pack in self._copied]
        with self._index.writing() as db:
            unmarked = [d for d in self._index.digests() if d not in self._marked]
            self._index.drop(db, packs=moving - staying, digests=unmarked)
            for pack, name in names:
                self._index.add_pack(db, name, pack.size, pack.table)
            self._index.drop_empty_packs(db)
            self._index.drop_dangling(db)
        self._unlink_unknown()

    def _unlink_unknown(self) -> None:
        """Remove files that are not in the index: left by a crash, or just dropped."""
        known = {name for _, name, _ in self._index.packs()}
        for entry in os.scandir(self._directory):
            path = Path(entry.path)
            if entry.name.endswith(".pack"):
                if entry.name not in known:
                    path.unlink(missing_ok=True)
            elif entry.name.endswith(".part") and is_abandoned(path):
                path.unlink(missing_ok=True)

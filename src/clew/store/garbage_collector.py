"""gc: mark what is needed, sweep the rest, while others go on putting.

1. Mark the contents in `live` and those that leases hold.
2. Close the gate, read the leases once more, drop the rest from the index in one transaction, and
   remove the packs that nothing refers to any more. This needs next to no room: a full disk can be
   swept.
3. Copy what is left in packs that are at least half empty into new packs, and sync those. Where
   there is no room to copy, free the blocks of these packs that nothing refers to in place (a hole
   in the file), and stop.
4. Close the gate again. What became needed meanwhile keeps its old pack; the other packs that were
   copied are replaced by the new ones in one transaction, and removed.

Killed at any moment, either the transaction happened or not; files that nothing refers to go the
next time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from clew.disk_reserve import NO_ROOM
from clew.errors import Busy
from clew.store.content_reader import Reader
from clew.store.errors import from_os
from clew.store.index import Index
from clew.store.leases import Gate, abandoned, begin_sweep, end_sweep, held
from clew.store.packs import pack_format
from clew.store.packs.pack_writer import OpenPack, Packer
from clew.store.types import Reclaimed, digest_of

Live = Iterable[str] | Callable[[], Iterable[str]]
"""The contents that are named, asked for after the sweep began: what is named later is leased."""
TINY = 4 << 20
"""Packs below this are gathered into one when there are many of them."""
MANY = 64


class Sweep:
    def __init__(self, path: Path, index: Index, gate: Gate, reader: Reader) -> None:
        self._path = path
        self._directory = path / "packs"
        self._index = index
        self._gate = gate
        self._reader = reader
        self._copied: list[OpenPack] = []
        self._marked: set[bytes] = set()  # contents and chunks that stay
        self._contents = 0

    def run(self, live: Live, *, dry_run: bool) -> Reclaimed:
        try:
            lock = os.open(self._path / "sweep", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise from_os(error, doing=f"write to {self._path}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return self._run(live, dry_run=dry_run)
        except BlockingIOError as error:
            raise Busy("another gc or fsck is at work", hint="try again when it is done") from error
        except OSError as error:
            raise from_os(error, doing=f"write to {self._path}") from error
        finally:
            # A child that another thread forks meanwhile has the descriptor until it executes.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def _run(self, live: Live, *, dry_run: bool) -> Reclaimed:
        leases = self._path / "leases"
        with self._gate.exclusive():
            begin_sweep(leases)
        try:
            names = live() if callable(live) else live
            self._mark(raw for name in names if (raw := digest_of(name)) is not None)
            before = self._usage()
            with self._gate.exclusive():
                self._mark(held(leases))
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
                self._marked.update(part for part, _ in pack_format.parts_of(file[2]))

    # -- measure

    def _usage(self) -> int:
        total = 0
        for path in self._directory.iterdir():
            with contextlib.suppress(FileNotFoundError):  # others come and go
                found = path.stat()
                total += min(found.st_size, found.st_blocks * 512)  # blocks may be freed in place
        return total

    def _dead(self) -> list[bytes]:
        return [digest for digest in self._index.contents() if digest not in self._marked]

    def _estimate(self) -> Reclaimed:
        """What would go: whole packs, and the dead share of the packs that would be rewritten."""
        freed = 0
        for size, living in self._weights().values():
            if living * 2 <= size:
                freed += size - living
        return Reclaimed(len(self._dead()), freed)

    def _weights(self) -> dict[int, tuple[int, int]]:
        """Each pack's size, and how much of it is needed. Packs that come meanwhile are let be."""
        weights = {number: [size, 0] for number, _, size in self._index.packs()}
        for digest, pack, length, stored, total in self._index.shares():
            if digest in self._marked and pack in weights:
                weights[pack][1] += -(-stored * length // max(total, 1))
        for digest, pack, size in self._index.records():
            if digest in self._marked and pack in weights:
                weights[pack][1] += size
        return {number: (size, min(size, living)) for number, (size, living) in weights.items()}

    def _sparse_packs(self) -> set[int]:
        weights = self._weights()
        moving = {n for n, (size, living) in weights.items() if 0 < living * 2 <= size}
        tiny = [n for n, (size, living) in weights.items() if living and size < TINY]
        if len(tiny) >= MANY:
            moving.update(tiny)
        return moving

    # -- copy

    def _compact(self, moving: set[int], leases: Path) -> None:
        try:
            moved = self._copy(moving)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            with self._gate.exclusive():
                self._free_in_place(moving)
            return
        with self._gate.exclusive():
            self._mark(held(leases))
            self._drop(moving, moved)

    def _free_in_place(self, sparse: set[int]) -> None:
        """Inside the closed gate: free the blocks that the index does not know any more."""
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
        """Put what is needed of these packs into new ones; synced, not named yet."""
        moved: set[bytes] = set()
        if not moving:
            return moved
        packer = Packer(self._directory, self._copied.append, threads=1)
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

    # -- drop, inside the closed gate

    def _drop(self, moving: set[int], moved: set[bytes]) -> None:
        needed = [(p, d) for p, d, _ in self._index.chunks_in(moving)]
        needed += [(p, f.digest) for p in moving for f in self._index.files_of_pack(p)]
        # A pack goes when all that is needed of it now was copied before.
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
        """Files that the index does not name: left by a crash, or dropped just now."""
        known = {name for _, name, _ in self._index.packs()}
        for entry in os.scandir(self._directory):
            path = Path(entry.path)
            if entry.name.endswith(".pack"):
                if entry.name not in known:
                    path.unlink(missing_ok=True)
            elif entry.name.endswith(".part") and abandoned(path):
                path.unlink(missing_ok=True)

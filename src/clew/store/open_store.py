"""Opening a store, making one, and making the index anew from the packs."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from clew.errors import ClewError, Damaged, Full
from clew.store.errors import from_os
from clew.store.index import Index, in_memory
from clew.store.leases import Gate
from clew.store.packs import pack_format

FORMAT = "clew-store 1\n"
_DIRECTORIES = ("packs", "leases")


def make(path: Path) -> bool:
    """Make what is missing; True when the store can be written."""
    try:
        found = (path / "format").read_text()
    except FileNotFoundError:
        _create(path)
        return True
    except OSError as error:
        raise from_os(error, doing=f"open the store {path}") from error
    if found != FORMAT:
        raise ClewError(
            f"{path} is a store of another format: {found.strip()[:40]}",
            hint="use the version of Clew that made it, or a newer one",
        )
    return os.access(path, os.W_OK) and os.access(path / "packs", os.W_OK)


def _create(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in _DIRECTORIES:
            (path / name).mkdir(exist_ok=True)
        draft = path / f".format.{os.getpid()}.{threading.get_ident()}"
        with open(draft, "w") as file:
            file.write(FORMAT)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path / "format")
        sync_directory(path)
    except OSError as error:
        raise from_os(error, doing=f"make a store in {path}") from error


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def index(path: Path, *, gate: Gate, writable: bool) -> tuple[Index, Damaged | Full | None]:
    """The index, made from the packs when it is missing.

    When it cannot be read where it lies, one is made in memory; with it comes what is wrong, if
    anything is: being on a read-only disk with another's log beside it is not. A full disk is:
    SQLite needs some room even to read.
    """
    file = path / "index.db"
    damage: Damaged | Full | None = None
    try:
        if not writable:
            return Index(file, read_only=True), None
        if file.exists():
            return Index(file), None
        with gate.exclusive():
            there = file.exists()
            made = Index(file)
            if not there:
                fill(made, path / "packs", anew=False)
            return made, None
    except (Damaged, Full) as error:
        damage = error
    except ClewError:
        if writable:
            raise
    made = in_memory()
    fill(made, path / "packs", anew=False)
    return made, damage


def renew(path: Path) -> Index:
    """A new index in place of a damaged one; inside the closed gate."""
    for file in path.glob("index.db*"):
        file.unlink(missing_ok=True)
    made = Index(path / "index.db")
    fill(made, path / "packs", anew=False)
    return made


def fill(index: Index, directory: Path, *, anew: bool) -> int:
    """Enter every pack into the index. Packs that cannot be read are left out; fsck names them.

    Files whose chunks are not all there are left out, too: a sweep dropped them, or a pack is lost.
    """
    count = 0
    with index.writing() as db:
        if anew:
            index.clear(db)
        for path in sorted(directory.glob("*.pack")):
            try:
                table = pack_format.without_freed_blocks(path, pack_format.read_table(path))
            except Damaged:
                continue
            index.add_pack(db, path.name, path.stat().st_size, table)
            count += 1
        index.drop_dangling(db)
    return count

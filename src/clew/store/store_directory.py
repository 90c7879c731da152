"""Create or open the directory and the index of a store."""

import os
from pathlib import Path

from clew.atomic_file import write_atomically
from clew.errors import ClewError, Damaged, Full
from clew.store.errors import from_os
from clew.store.index import Index, open_in_memory
from clew.store.leases import StoreLock
from clew.store.packs import pack_format

FORMAT = "clew-store 1\n"
_DIRECTORIES = ("packs", "leases")


def prepare_directory(path: Path) -> bool:
    """Create what is missing; returns whether the store can be written."""
    try:
        version = (path / "format").read_text()
    except FileNotFoundError:
        _create(path)
        return True
    except OSError as error:
        raise from_os(error, doing=f"open the store {path}") from error
    if version != FORMAT:
        raise ClewError(
            f"{path} is a store of another format: {version.strip()[:40]}",
            hint="use the version of Clew that made it, or a newer one",
        )
    return os.access(path, os.W_OK) and os.access(path / "packs", os.W_OK)


def _create(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in _DIRECTORIES:
            (path / name).mkdir(exist_ok=True)
        write_atomically(path / "format", FORMAT.encode(), mode=0o666, sync=True)
        sync_directory(path)
    except OSError as error:
        raise from_os(error, doing=f"make a store in {path}") from error


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_index(
    path: Path, *, store_lock: StoreLock, writable: bool
) -> tuple[Index, Damaged | Full | None]:
    """Open the index, or rebuild it from the packs if it is missing.

    If it cannot be read, build one in memory and return the error with it. A full disk is such an
    error, because SQLite needs some room even to read; a read-only disk is not.
    """
    file = path / "index.db"
    damage: Damaged | Full | None = None
    try:
        if not writable:
            return Index(file, read_only=True), None
        if file.exists():
            return Index(file), None
        with store_lock.exclusive():
            existed = file.exists()
            index = Index(file)
            if not existed:
                fill_index(index, path / "packs")
            return index, None
    except (Damaged, Full) as error:
        damage = error
    except ClewError:
        if writable:
            raise
    index = open_in_memory()
    fill_index(index, path / "packs")
    return index, damage


def fill_index(index: Index, directory: Path) -> None:
    """Add every pack to the index; fsck reports damaged ones.

    Files with missing chunks are left out: gc dropped them, or a pack is lost.
    """
    with index.writing() as db:
        for path in sorted(directory.glob("*.pack")):
            try:
                table = pack_format.without_freed_blocks(path, pack_format.read_table(path))
            except Damaged:
                continue
            index.add_pack(db, path.name, path.stat().st_size, table)
        index.drop_dangling(db)

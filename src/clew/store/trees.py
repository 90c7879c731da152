# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101, PTH102, PTH104, PTH211
"""A folder as content: a list of (path, type, mode, mtime, size, digest or link target).

Modes and times are part of it because programs look at them. The list is sorted by path, so the
same folder is the same content. Paths are bytes and stay so. `docs/formats/store.md` gives the
grammar.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from clew.errors import ClewError, Damaged, UsageError
from clew.store import files, packs
from clew.store.errors import from_os, shown
from clew.store.records import Problem, Signature, Snapshot, Stored

if TYPE_CHECKING:
    from clew.store.contents import Store
    from clew.store.putting import Writer

_Found = tuple[bytes, bytes, os.stat_result]
"""(path, path within the tree, status)"""

MAGIC = b"clew-tree 1\0"
_KINDS = {
    stat.S_IFREG: b"f",
    stat.S_IFDIR: b"d",
    stat.S_IFLNK: b"l",
    stat.S_IFIFO: b"p",
    stat.S_IFSOCK: b"s",
    stat.S_IFCHR: b"c",
    stat.S_IFBLK: b"b",
}


class Entry(NamedTuple):
    path: bytes
    """Relative to the tree; empty for its root."""
    kind: bytes
    mode: int
    mtime: int
    size: int
    target: bytes
    """A file's digest, a link's target, else empty."""


def encode(entries: list[Entry]) -> bytes:
    out = [MAGIC]
    for entry in sorted(entries):
        out.append(
            b"%s %o %d %d\0%s\0%s\0"
            % (entry.kind, entry.mode, entry.mtime, entry.size, entry.path, entry.target)
        )
    return b"".join(out)


def decode(data: bytes) -> list[Entry]:
    fields = data.split(b"\0")
    if not data.startswith(MAGIC) or len(fields) % 3 != 2 or fields[-1]:
        raise Damaged("this content is no tree", hint="name a snapshot")
    entries: list[Entry] = []
    for i in range(1, len(fields) - 1, 3):
        kind, mode, mtime, size = fields[i].split(b" ")
        entries.append(
            Entry(fields[i + 1], kind, int(mode, 8), int(mtime), int(size), fields[i + 2])
        )
    return entries


def put(writer: Writer, root: bytes) -> Snapshot:
    entries: list[Entry] = []
    skipped: list[Problem] = []
    contents: list[Stored] = []
    for batch in _batches(_walk(root, skipped)):
        found = files.put(
            writer,
            [path for path, _, status in batch if stat.S_ISREG(status.st_mode)],
            [Signature.of(s) for _, _, s in batch if stat.S_ISREG(s.st_mode)],
            keep=True,
        )
        for path, relative, status in batch:
            target = b""
            if stat.S_ISREG(status.st_mode):
                stored = next(found)
                if isinstance(stored, ClewError):
                    skipped.append(Problem(stored.message, shown(path)))
                    continue
                contents.append(stored)
                target = stored.digest.encode()
            elif stat.S_ISLNK(status.st_mode):
                try:
                    target = os.readlink(path)
                except OSError as error:
                    skipped.append(Problem(str(error.strerror), shown(path)))
                    continue
            entries.append(_entry(relative, status, target))
    if not entries or entries[0].path:
        raise ClewError(f"cannot read {shown(root)}: {skipped[0].what}")
    contents.append(writer.put_data(encode(entries), kind=packs.TREE))
    writer.flush()  # so that what is new is known
    return Snapshot(
        contents[-1].digest,
        len(entries),
        sum(content.size for content in contents[:-1]),
        sum(content.new_bytes for content in contents),
        skipped,
    )


def _entry(relative: bytes, status: os.stat_result, target: bytes) -> Entry:
    mode = status.st_mode
    size = status.st_size if stat.S_ISREG(mode) else 0
    kind = _KINDS[stat.S_IFMT(mode)]
    return Entry(relative, kind, stat.S_IMODE(mode), status.st_mtime_ns, size, target)


def _batches(found: Iterator[_Found]) -> Iterator[list[_Found]]:
    while batch := list(itertools.islice(found, files.BATCH)):
        yield batch


def _walk(root: bytes, skipped: list[Problem]) -> Iterator[_Found]:
    """The root and all below it; links are not followed."""
    waiting = [(root, b"")]
    try:
        status = os.lstat(root)
    except OSError as error:
        raise from_os(error, doing=f"read {shown(root)}") from error
    yield root, b"", status
    while waiting:
        folder, prefix = waiting.pop()
        try:
            names = sorted(os.listdir(folder))
        except NotADirectoryError:
            continue
        except OSError as error:
            skipped.append(Problem(str(error.strerror), shown(folder)))
            continue
        for name in names:
            path, relative = folder + b"/" + name, prefix + name
            try:
                status = os.lstat(path)
            except OSError as error:
                skipped.append(Problem(str(error.strerror), shown(path)))
                continue
            yield path, relative, status
            if stat.S_ISDIR(status.st_mode):
                waiting.append((path, relative + b"/"))


def restore(store: Store, digest: str, to: bytes) -> None:
    """Into a draft beside `to` that is renamed when it is whole."""
    entries = decode(b"".join(store.read(digest)))
    if os.path.lexists(to):
        raise UsageError(f"{shown(to)} is there already", hint="name a folder that is not")
    draft = to.rstrip(b"/") + b".%s" % os.urandom(4).hex().encode()
    try:
        for entry in entries:  # sorted: a folder comes before what is in it
            _restore_entry(store, entry, os.path.join(draft, entry.path) if entry.path else draft)
        for entry in reversed(entries):  # writing into a folder changes its time and needs its mode
            if entry.kind == b"d":
                path = os.path.join(draft, entry.path) if entry.path else draft
                os.chmod(path, entry.mode)
                os.utime(path, ns=(entry.mtime, entry.mtime))
        os.rename(draft, to)
    except BaseException as error:
        import shutil  # late: start-up

        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError):
            raise from_os(error, doing=f"restore to {shown(to)}") from error
        raise


def _restore_entry(store: Store, entry: Entry, path: bytes) -> None:
    if entry.path.startswith(b"/") or b".." in entry.path.split(b"/"):
        raise Damaged(f"a tree may not name {shown(entry.path)}")
    times = (entry.mtime, entry.mtime)
    if entry.kind == b"d":
        os.mkdir(path, 0o700)
    elif entry.kind == b"f":
        store.restore(entry.target.decode(), path, mode=entry.mode, mtime=entry.mtime, sync=False)
    elif entry.kind == b"l":
        os.symlink(entry.target, path)
        os.utime(path, ns=times, follow_symlinks=False)
    elif entry.kind == b"p":
        os.mkfifo(path, entry.mode)
        os.utime(path, ns=times)
    # sockets and devices cannot be made by everybody and hold nothing: they stay in the list alone

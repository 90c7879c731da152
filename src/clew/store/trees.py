# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101, PTH102, PTH104, PTH211
"""A directory as content: a list of (path, type, mode, mtime, size, digest or link target).

Modes and times are part of it because programs look at them. The list is sorted by path, so the
same directory is the same content. Paths are bytes and stay so. `docs/formats/store.md` gives the
grammar.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from clew.errors import ClewError, Damaged, UsageError
from clew.safe_path import SafeDirectory
from clew.store import file_input
from clew.store.errors import from_os, shown
from clew.store.packs import pack_format
from clew.store.types import Problem, Signature, Snapshot, Stored, named

if TYPE_CHECKING:
    from clew.store.content_store import Store
    from clew.store.content_writer import Writer

_Found = tuple[bytes, os.stat_result]
"""(path within the tree, status)"""

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
    return b"".join([MAGIC, *(_line(*entry) for entry in sorted(entries))])


def _line(path: bytes, kind: bytes, mode: int, mtime: int, size: int, target: bytes) -> bytes:
    return b"%s %o %d %d\0%s\0%s\0" % (kind, mode, mtime, size, path, target)


def decode(data: bytes) -> list[Entry]:
    fields = data.split(b"\0")
    if not data.startswith(MAGIC) or len(fields) % 3 != 2 or fields[-1]:
        raise Damaged("this content is no tree", hint="name a snapshot")
    entries: list[Entry] = []
    try:
        for i in range(1, len(fields) - 1, 3):
            kind, mode, mtime, size = fields[i].split(b" ")
            entries.append(
                Entry(fields[i + 1], kind, int(mode, 8), int(mtime), int(size), fields[i + 2])
            )
    except ValueError as error:
        raise Damaged("this content is no tree", hint="name a snapshot") from error
    return entries


def put(writer: Writer, root: bytes) -> Snapshot:
    lines: dict[bytes, bytes] = {}  # by path: of many files these are lighter than entries
    size = 0
    skipped: list[Problem] = []
    new: list[Stored] = []
    for batch in _batches(_walk(root, skipped)):
        regular = [found for found in batch if stat.S_ISREG(found[1].st_mode)]
        for (relative, status), content in zip(
            regular, _contents(writer, root, regular, new), strict=True
        ):
            if isinstance(content, ClewError):
                skipped.append(Problem(content.message, shown(_path(root, relative))))
            else:
                mode, mtime, length = status.st_mode, status.st_mtime_ns, status.st_size
                lines[relative] = _line(relative, b"f", stat.S_IMODE(mode), mtime, length, content)
                size += length
        for relative, status in batch:
            if stat.S_ISREG(status.st_mode):
                continue
            try:
                target = os.readlink(_path(root, relative)) if stat.S_ISLNK(status.st_mode) else b""
            except OSError as error:
                skipped.append(Problem(str(error.strerror), shown(_path(root, relative))))
            else:
                kind, mode = _KINDS[stat.S_IFMT(status.st_mode)], stat.S_IMODE(status.st_mode)
                lines[relative] = _line(relative, kind, mode, status.st_mtime_ns, 0, target)
    if b"" not in lines:
        raise ClewError(f"cannot read {shown(root)}: {skipped[0].what}")
    listed = b"".join([MAGIC, *(lines[path] for path in sorted(lines))])
    tree = writer.put_data(listed, kind=pack_format.TREE)
    writer.flush()  # so that what is new is known
    new_bytes = sum(content.new_bytes for content in (*new, tree))
    return Snapshot(tree.digest, len(lines), size, new_bytes, skipped)


def _contents(
    writer: Writer, root: bytes, regular: list[_Found], new: list[Stored]
) -> Iterator[bytes | ClewError]:
    """The content of each file, or why there is none; what had to be read is added to `new`.

    The files were asked for their status just now, so those that are known are not touched again.
    """
    signatures = [Signature.of(status) for _, status in regular]
    known = [row[0] if row and row[1] else None for row in writer.recall(signatures)]
    unknown = [i for i, digest in enumerate(known) if digest is None]
    read = file_input.put(
        writer,
        [_path(root, regular[i][0]) for i in unknown],
        [signatures[i] for i in unknown],
        keep=True,
        anew=True,
    )
    for digest in known:
        if digest is not None:
            yield named(digest).encode()
            continue
        stored = next(read)
        if isinstance(stored, ClewError):
            yield stored
        else:
            new.append(stored)
            yield stored.digest.encode()


def _path(root: bytes, relative: bytes) -> bytes:
    return root + b"/" + relative if relative else root


def _batches(found: Iterator[_Found]) -> Iterator[list[_Found]]:
    while batch := list(itertools.islice(found, file_input.BATCH)):
        yield batch


def _walk(root: bytes, skipped: list[Problem]) -> Iterator[_Found]:
    """The root and all below it; links are not followed."""
    try:
        status = os.lstat(root)
    except OSError as error:
        raise from_os(error, doing=f"read {shown(root)}") from error
    yield b"", status
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        path = _path(root, directory)
        try:
            names = sorted(os.listdir(path))
        except NotADirectoryError:
            continue
        except OSError as error:
            skipped.append(Problem(str(error.strerror), shown(path)))
            continue
        inside, prefix = path + b"/", directory + b"/" if directory else b""
        for name in names:
            try:
                status = os.lstat(inside + name)
            except OSError as error:
                skipped.append(Problem(str(error.strerror), shown(inside + name)))
                continue
            relative = prefix + name
            yield relative, status
            if stat.S_ISDIR(status.st_mode):
                waiting.append(relative)


def restore(store: Store, digest: str, to: bytes) -> None:
    """Into a draft beside `to` that is renamed when it is whole."""
    entries = decode(b"".join(store.read(digest)))
    if not entries or entries[0].path or (len(entries) > 1 and entries[0].kind != b"d"):
        raise Damaged("this tree does not begin with its root", hint="name a snapshot")
    if os.path.lexists(to):
        raise UsageError(f"{shown(to)} is there already", hint="name a directory that is not")
    draft = to.rstrip(b"/") + b".%s" % os.urandom(4).hex().encode()
    try:
        root, *below = entries
        directories = []
        if root.kind == b"d":
            os.mkdir(draft, 0o700)
            directories.append((draft, root))
        else:
            _restore_entry(store, root, draft)
        places = SafeDirectory(draft)
        for entry in below:  # sorted: a directory comes before what is in it
            if entry.kind == b"d":
                directories.append((places.make_directory(entry.path), entry))
            else:
                _restore_entry(store, entry, places.join(entry.path))
        for path, entry in reversed(
            directories
        ):  # writing into a directory changes its time and mode
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
    times = (entry.mtime, entry.mtime)
    if entry.kind == b"f":
        digest = entry.target.decode(errors="replace")
        store.restore(digest, path, mode=entry.mode, mtime=entry.mtime, sync=False)
    elif entry.kind == b"l":
        os.symlink(entry.target, path)
        os.utime(path, ns=times, follow_symlinks=False)
    elif entry.kind == b"p":
        os.mkfifo(path, entry.mode)
        os.utime(path, ns=times)
    # sockets and devices cannot be made by everybody and hold nothing: they stay in the list alone

# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101
"""Restore the results of a reused subtree: files, links, directories, output, file offsets.

The skipped program has not started, and its dependencies were checked. A failure here leaves the
sandbox half changed, so it fails the whole execution.
"""

import os
import stat
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from clew.documents.ids import Digest
from clew.errors import Damaged
from clew.replay.reuse.subtree import InheritedFile, Output, Subtree
from clew.safe_path import open_directory, open_parent
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.version_tracker import file_stat_of

_CLOCK_REALTIME_COARSE = 5  # CLOCK_REALTIME_COARSE: the clock that files are stamped by
_TICK_NS = 20_000_000
"""ns; more than that clock lags behind."""

ReadContent = Callable[[Digest], Iterator[bytes]]
MapTime = Callable[[int], int]
"""Maps a recorded modification time to the one that the file gets now."""


def keep_times(mtime: int) -> int:
    """Keep the recorded times: no other process has run."""
    return mtime


def renew_times(subtree: Subtree, known: Mapping[int, int]) -> MapTime:
    """Give files that the subtree wrote the current time, in their recorded order, because other
    processes have run before. `known`: recorded times of its dependencies and what they are now."""
    versions = [left.version for left in subtree.outputs.values()]
    versions += [file.version for file in subtree.handed]
    since, until = subtree.started - _TICK_NS, subtree.ended + _TICK_NS
    written = {v.mtime for v in versions if v is not None and v.mtime is not None}
    fresh = sorted(m for m in written if m not in known and since <= m <= until)
    now = _next_tick() if fresh else 0
    times = {**known, **{m: now - len(fresh) + n for n, m in enumerate(fresh)}}
    return lambda mtime: times.get(mtime, mtime)


def _next_tick() -> int:
    """Wait for the next tick of the clock that stamps files: everything written so far is older,
    everything written later is not."""
    begun = now = time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    while now == begun:
        time.sleep(0.0002)
        now = time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    return now


def can_restore(subtree: Subtree, root: bytes) -> bool:
    """Whether the parent directories of all outputs exist. `root`: the sandbox, seen from here."""
    made = {path for path, left in subtree.outputs.items() if left.kind == "directory"}
    for path, left in subtree.outputs.items():
        directory = os.path.dirname(path)
        if left.kind != "gone" and directory not in made:
            try:
                with open_directory(root, directory[1:]):
                    pass
            except (OSError, Damaged):
                return False
    return True


def restore_outputs(
    subtree: Subtree, root: bytes, read: ReadContent, copies: Mapping[int, int], times: MapTime
) -> tuple[dict[bytes, FileStat], dict[bytes, FileStat]]:
    """Restore the outputs. Returns the state of inherited files before, and of outputs after."""
    opened = {file.path: file_stat_of(os.fstat(copies[file.fd])) for file in subtree.handed}
    _restore_paths(subtree, root, read, times)
    for inherited in subtree.handed:
        _write_inherited(copies[inherited.fd], inherited, read, times)
    for name in subtree.printed:
        _print(subtree, name, read, copies)
    for fd, place in subtree.offsets.items():
        if fd in copies:
            os.lseek(copies[fd], place, os.SEEK_SET)
    paths = [path for path, left in subtree.outputs.items() if left.kind in ("file", "link")]
    paths += [inherited.path for inherited in subtree.handed]
    return opened, {path: _file_stat(root, path) for path in paths}


def _file_stat(root: bytes, path: bytes) -> FileStat:
    with open_parent(root, path[1:]) as (directory, name):
        return file_stat_of(os.lstat(name, dir_fd=directory))


def _restore_paths(subtree: Subtree, root: bytes, read: ReadContent, times: MapTime) -> None:
    """Remove from the innermost path, create from the outermost. No link is followed: the program
    or an untrusted record may have put links anywhere."""
    by_depth = sorted(subtree.outputs.items(), key=lambda item: item[0].count(b"/"))
    for path, left in reversed(by_depth):
        if left.kind == "gone":
            with suppress(FileNotFoundError), open_parent(root, path[1:]) as parent:
                _remove(*parent)
    for path, left in by_depth:
        if left.kind != "gone":
            with open_parent(root, path[1:]) as parent:
                _make(*parent, left, read, times)
    for path, left in reversed(by_depth):
        if left.kind == "directory":
            with open_directory(root, path[1:]) as directory:
                link = f"/proc/self/fd/{directory}"  # works whatever its mode is
                os.chmod(link, stat.S_IMODE(left.mode))
                if left.mtime is not None:
                    os.utime(link, ns=(left.mtime, left.mtime))


def _make(directory: int, name: bytes, left: Output, read: ReadContent, times: MapTime) -> None:
    if left.kind == "directory":
        if not _is_directory(directory, name):
            _remove(directory, name)
            os.mkdir(name, dir_fd=directory)
    elif left.kind == "link":
        _remove(directory, name)
        target = next(iter(read(_digest(left))), b"")  # no link has more than one piece
        os.symlink(target, name, dir_fd=directory)
    elif left.kind == "file":
        _write_file(directory, name, left, read, times)


def _is_directory(directory: int, name: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode)
    except FileNotFoundError:
        return False


def _digest(left: Output) -> Digest:
    assert left.version is not None and left.version.digest is not None
    return left.version.digest


def _remove(directory: int, name: bytes) -> None:
    with suppress(FileNotFoundError):
        if _is_directory(directory, name):
            os.rmdir(name, dir_fd=directory)
        else:
            os.unlink(name, dir_fd=directory)


def _write_file(
    directory: int, name: bytes, left: Output, read: ReadContent, times: MapTime
) -> None:
    """Write in place if the program did: a process that has the file open sees the change."""
    assert left.version is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    if not left.in_place:
        _remove(directory, name)
    try:
        file = os.open(name, flags, 0o600, dir_fd=directory)
    except OSError:  # it is a link, is being executed, or must not be written
        _remove(directory, name)
        file = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        for data in read(_digest(left)):
            _write_all(file, data)
        os.fchmod(file, left.mode)
        mtime = times(left.version.mtime or 0)
        os.utime(file, ns=(mtime, mtime))
    finally:
        os.close(file)


def _write_inherited(
    copy: int, inherited: InheritedFile, read: ReadContent, times: MapTime
) -> None:
    """Write through the inherited descriptor: other processes continue at its offset."""
    skip = inherited.since
    for data in read(inherited.version.digest or Digest("")):
        _write_all(copy, data[skip:])
        skip = max(0, skip - len(data))
    mtime = times(inherited.version.mtime or 0)
    os.utime(copy, ns=(mtime, mtime))


def _print(subtree: Subtree, name: str, read: ReadContent, copies: Mapping[int, int]) -> None:
    since, until = subtree.printed[name]
    writable = (fd for fd, mode, stream, *_ in subtree.held if fd and stream == name and mode & 2)
    to = copies[next(writable)]
    whole = subtree.stream(name)
    assert whole is not None and whole.digest is not None
    printed = _slice(read(whole.digest), since, until)
    _write_all(to, printed.replace(b"\r\n", b"\n") if _translates_newlines(to) else printed)


def _slice(data: Iterator[bytes], since: int, until: int) -> bytes:
    parts, at = [], 0
    for block in data:
        parts.append(block[max(0, since - at) : max(0, until - at)])
        at += len(block)
        if at >= until:
            break
    return b"".join(parts)


def _translates_newlines(descriptor: int) -> bool:
    """Whether this is a terminal that turns newlines into CRLF, as the recorded output has them."""
    if not os.isatty(descriptor):
        return False
    modes = termios.tcgetattr(descriptor)[1]
    return bool(modes & termios.OPOST and modes & termios.ONLCR)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101
"""Putting in place what a unit left, as if it had run: files, links, folders, output, places.

The program that is stood in for has not begun, and everything it needs was found to be so. What
fails here leaves things half done, so it fails the whole run.
"""

from __future__ import annotations

import os
import stat
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from clew.errors import Damaged
from clew.replay.reuse.subtree import Handed, Left, Unit
from clew.safe_path import open_folder, open_parent
from clew.witness.syscalls.trace_format import Facts
from clew.witness.syscalls.version_tracker import facts_of

_COARSE = 5  # CLOCK_REALTIME_COARSE: the clock that files are stamped by
_TICK = 20_000_000
"""ns; more than that clock lags behind."""

Read = Callable[[str], Iterator[bytes]]


Times = Callable[[int], int]
"""The time that a file is to have now, by the time it had then."""


def as_then(mtime: int) -> int:
    """Nothing else has run: all times are as they were."""
    return mtime


def as_now(unit: Unit, known: Mapping[int, int]) -> Times:
    """Others have run: what the unit wrote is as new as if it had run now, in the same order and
    before all that comes. `known`: what the times of the files it asked about have become."""
    versions = [left.version for left in unit.leaves.values()]
    versions += [one.version for one in unit.handed]
    since, until = unit.begun - _TICK, unit.over + _TICK
    written = {v.mtime for v in versions if v is not None and v.mtime is not None}
    fresh = sorted(m for m in written if m not in known and since <= m <= until)
    now = _next_tick() if fresh else 0
    times = {**known, **{m: now - len(fresh) + n for n, m in enumerate(fresh)}}
    return lambda mtime: times.get(mtime, mtime)


def _next_tick() -> int:
    """The file system's clock goes in ticks: at the beginning of one, everything written so far is
    older than it, and nothing written later is."""
    begun = now = time.clock_gettime_ns(_COARSE)
    while now == begun:
        time.sleep(0.0002)
        now = time.clock_gettime_ns(_COARSE)
    return now


def possible(unit: Unit, root: bytes) -> bool:
    """Whether there is a place for all it left. `root`: where the sandbox is seen from here."""
    made = {path for path, left in unit.leaves.items() if left.kind == "folder"}
    for path, left in unit.leaves.items():
        folder = os.path.dirname(path)
        if left.kind != "gone" and folder not in made:
            try:
                with open_folder(root, folder[1:]):
                    pass
            except (OSError, Damaged):
                return False
    return True


def apply(
    unit: Unit, root: bytes, read: Read, copies: Mapping[int, int], times: Times
) -> tuple[dict[bytes, Facts], dict[bytes, Facts]]:
    """Do it; the state of what was handed before, and of all it left after."""
    opened = {one.path: facts_of(os.fstat(copies[one.fd])) for one in unit.handed}
    _lay_out(unit, root, read, times)
    for one in unit.handed:
        _write_on(copies[one.fd], one, read, times)
    for name in unit.output:
        _print(unit, name, read, copies)
    for fd, place in unit.places.items():
        if fd in copies:
            os.lseek(copies[fd], place, os.SEEK_SET)
    left_there = [path for path, left in unit.leaves.items() if left.kind in ("file", "link")]
    left_there += [one.path for one in unit.handed]
    return opened, {path: _facts(root, path) for path in left_there}


def _facts(root: bytes, path: bytes) -> Facts:
    with open_parent(root, path[1:]) as (folder, name):
        return facts_of(os.lstat(name, dir_fd=folder))


def _lay_out(unit: Unit, root: bytes, read: Read, times: Times) -> None:
    """What goes, from the innermost; what comes, from the outermost. The program, or a record that
    somebody else made, may have put links anywhere: none of them is followed."""
    by_depth = sorted(unit.leaves.items(), key=lambda item: item[0].count(b"/"))
    for path, left in reversed(by_depth):
        if left.kind == "gone":
            with suppress(FileNotFoundError), open_parent(root, path[1:]) as place:
                _remove(*place)
    for path, left in by_depth:
        if left.kind != "gone":
            with open_parent(root, path[1:]) as place:
                _make(*place, left, read, times)
    for path, left in reversed(by_depth):
        if left.kind == "folder":
            with open_folder(root, path[1:]) as folder:
                place_of = f"/proc/self/fd/{folder}"  # by its descriptor, whatever its mode
                os.chmod(place_of, stat.S_IMODE(left.mode))
                if left.mtime is not None:
                    os.utime(place_of, ns=(left.mtime, left.mtime))


def _make(folder: int, name: bytes, left: Left, read: Read, times: Times) -> None:
    if left.kind == "folder":
        if not _is_folder(folder, name):
            _remove(folder, name)
            os.mkdir(name, dir_fd=folder)
    elif left.kind == "link":
        _remove(folder, name)
        os.symlink(b"".join(read(_digest(left))), name, dir_fd=folder)
    elif left.kind == "file":
        _file(folder, name, left, read, times)


def _is_folder(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return False


def _digest(left: Left) -> str:
    assert left.version is not None and left.version.digest is not None
    return left.version.digest


def _remove(folder: int, name: bytes) -> None:
    with suppress(FileNotFoundError):
        if _is_folder(folder, name):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _file(folder: int, name: bytes, left: Left, read: Read, times: Times) -> None:
    """In place where that is how it was written: who has it open sees the change."""
    assert left.version is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    if not left.in_place:
        _remove(folder, name)
    try:
        file = os.open(name, flags, 0o600, dir_fd=folder)
    except OSError:  # it is a link, is being executed, or must not be written
        _remove(folder, name)
        file = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        for data in read(_digest(left)):
            _write_all(file, data)
        os.fchmod(file, left.mode)
        mtime = times(left.version.mtime or 0)
        os.utime(file, ns=(mtime, mtime))
    finally:
        os.close(file)


def _write_on(copy: int, one: Handed, read: Read, times: Times) -> None:
    """Through the very opening it was handed: whoever has that as well goes on after it."""
    skip = one.since
    for data in read(one.version.digest or ""):
        _write_all(copy, data[skip:])
        skip = max(0, skip - len(data))
    mtime = times(one.version.mtime or 0)
    os.utime(copy, ns=(mtime, mtime))


def _print(unit: Unit, name: str, read: Read, copies: Mapping[int, int]) -> None:
    since, until = unit.output[name]
    to = copies[next(fd for fd, way, told, *_ in unit.held if fd and told == name and way & 2)]
    whole = unit.stream(name)
    assert whole is not None and whole.digest is not None
    printed = _between(read(whole.digest), since, until)
    _write_all(to, printed.replace(b"\r\n", b"\n") if _ends_lines(to) else printed)


def _between(data: Iterator[bytes], since: int, until: int) -> bytes:
    parts, at = [], 0
    for block in data:
        parts.append(block[max(0, since - at) : max(0, until - at)])
        at += len(block)
        if at >= until:
            break
    return b"".join(parts)


def _ends_lines(descriptor: int) -> bool:
    """Whether this is a terminal that turns newlines into line ends, as the kept ones are."""
    if not os.isatty(descriptor):
        return False
    modes = termios.tcgetattr(descriptor)[1]
    return bool(modes & termios.OPOST and modes & termios.ONLCR)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

"""Events of fanotify to accesses: from handles to paths, from masks to reads and writes.

The kernel does not say how a file was opened. A close without writing is a read; a close after
writing is a write if something was modified; an access before it, a read too. A read counts from
the time of the opening, because what the container writes before it closes may depend on it.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.kernel.fanotify import (
    ACCESS,
    CLOSE_NOWRITE,
    CLOSE_WRITE,
    DELETE,
    MODIFY,
    ON_DIRECTORY,
    OVERFLOW,
    RENAME,
    FileEvent,
)
from clew.agents.node.kernel.volume_mount import VolumeMount
from clew.documents.ids import Uid
from clew.witness.volumes.accesses import Access, FileAccess, FileRemoval, FileRename

MAX_CHILDREN = 10_000
"""Files of a renamed directory that are followed."""


LONG_WRITE = 1_000_000_000
"""Nanoseconds after which a file that is still written is reported, before it is closed."""


@dataclass
class _OpenFile:
    mask: int
    at: int
    mount: WatchedMount
    path: bytes
    modified_at: int = 0
    reported: bool = False
    """It was reported as being written."""


class AccessTranslator:
    """Translates the events of one container."""

    def __init__(
        self,
        container: WatchedContainer,
        is_selected: Callable[[str, bytes], bool],
        counts: Counter[str],
    ) -> None:
        """`is_selected`: whether a path on a volume is watched."""
        self._container = container
        self._is_selected = is_selected
        self._counts = counts
        self._open: dict[bytes, _OpenFile] = {}
        self._closed: set[bytes] = set()
        """Files that were closed after writing in this batch. The kernel merges the end of a write
        with its beginning, so what it reports of the writing itself may follow."""
        self.overflowed = False
        """Events were lost since this was last reset."""
        self.unresolved = 0
        """Accesses to files in directories that were gone, likewise."""

    def translate(self, events: Iterator[FileEvent], at: int) -> Iterator[FileAccess]:
        """The accesses of a batch that began at this time; each later than the one before."""
        self._closed.clear()
        merged: dict[bytes, FileAccess] = {}
        now = at
        for event in events:
            self._counts["events"] += 1
            if event.mask & OVERFLOW:
                self.overflowed = True
                continue
            located = self._locate(event)
            if located is None:
                self.unresolved += 1
                continue
            mount, path = located
            key = mount.planned.volume.key
            if not self._is_selected(key, path):
                continue
            now += 2
            access = self._access(event, mount, path, now)
            if access is None:
                continue
            # Another process of the container continues with what was written.
            if (before := merged.pop(event.handle, None)) is not None:
                yield msgspec.structs.replace(before, at=now - 1)
            if access.written and event.mask != CLOSE_WRITE:
                merged[event.handle] = access
            else:
                yield access
        # The kernel puts the end of a write where it began. What was read since may be in it.
        for later, access in enumerate(merged.values(), start=now + 1):
            yield msgspec.structs.replace(access, at=later)

    def long_writes(self, now: int) -> Iterator[FileAccess]:
        """Files that are written for long and not closed yet: a log, the events of a training."""
        for handle, opened in self._open.items():
            modified = opened.modified_at and not opened.reported
            if modified and now - opened.modified_at > LONG_WRITE:
                opened.reported = True
                at = opened.modified_at
                access = self._make(handle, opened, at, written=True, closed=False)
                if access is not None:
                    yield access

    def _locate(self, event: FileEvent) -> tuple[WatchedMount, bytes] | None:
        for one in self._container.mounts:
            directory = one.mount.directory_path(event.directory)
            if directory is not None:
                return one, b"%b/%b" % (directory, event.name)
        return None

    def _access(
        self, event: FileEvent, mount: WatchedMount, path: bytes, at: int
    ) -> FileAccess | None:
        if event.handle in self._closed and not event.mask & ~MODIFY:
            return None
        opened = self._open.get(event.handle)
        if opened is None:
            opened = self._open[event.handle] = _OpenFile(0, at, mount, path)
        opened.mask |= event.mask
        opened.mount, opened.path = mount, path
        if event.mask & MODIFY and not opened.modified_at:
            opened.modified_at = at
        if event.mask & (CLOSE_WRITE | CLOSE_NOWRITE):
            del self._open[event.handle]
        if event.mask & CLOSE_WRITE:
            self._closed.add(event.handle)
            return self._make(event.handle, opened, at, written=True, closed=True)
        if event.mask & (ACCESS | CLOSE_NOWRITE):
            return self._make(event.handle, opened, opened.at, written=False, closed=True)
        return None  # how it is used is not known yet, or it is still written

    def _make(
        self, handle: bytes, opened: _OpenFile, at: int, *, written: bool, closed: bool
    ) -> FileAccess | None:
        state = opened.mount.mount.state(handle)
        if state is not None and not stat.S_ISREG(state.mode):
            return None
        return FileAccess(
            at=at,
            container=self._container.uid,
            volume=opened.mount.planned.volume.key,
            path=opened.path,
            handle=handle,
            read=bool(opened.mask & (ACCESS | CLOSE_NOWRITE)),
            written=written,
            closed=closed,
            modified=bool(opened.mask & MODIFY),
            state=state,
        )


class NameTranslator:
    """Translates removed and changed names on one file system."""

    def __init__(self, report: Callable[[str, str, str], None], counts: Counter[str]) -> None:
        """`report` takes a volume, what could not be seen there, and why."""
        self._report = report
        self._counts = counts

    def translate(
        self,
        event: FileEvent,
        container: Uid | None,
        known: bool,
        mounts: list[tuple[Uid, WatchedMount]],
        at: int,
    ) -> Iterator[Access]:
        """`container`: of the process, if that is `known`; `mounts`: those of the device."""
        self._counts["events"] += 1
        old = _find(mounts, event.directory, event.name)
        new = _find(mounts, event.new_directory, event.new_name)
        place = old or new
        if place is None:
            return
        mount, _ = place
        key = mount.planned.volume.key
        if not known:
            container = self._only_writer(key, mounts)
        directory = bool(event.mask & ON_DIRECTORY)
        if event.mask & RENAME and old and new and new[0].planned.volume.key == key:
            if directory:
                for _, one in mounts:
                    one.mount.forget_paths()
            yield self._rename(event, container, mount, old[1], new, directory, at)
        elif event.mask & RENAME and new and not old:
            yield FileRemoval(at=at, container=None, volume=key, path=new[1], handle=event.handle)
        elif event.mask & (DELETE | RENAME) and old and not directory:
            yield FileRemoval(
                at=at, container=container, volume=key, path=old[1], handle=event.handle
            )

    def _rename(
        self,
        event: FileEvent,
        container: Uid | None,
        mount: WatchedMount,
        path: bytes,
        new: tuple[WatchedMount, bytes],
        directory: bool,
        at: int,
    ) -> FileRename:
        key, state = mount.planned.volume.key, None
        children: tuple[bytes, ...] = ()
        if directory:
            found = list_files(new[0].mount, event.handle, new[1])
            if len(found) > MAX_CHILDREN:
                self._report(key, "files of a renamed directory", "there are too many of them")
            children = tuple(found[:MAX_CHILDREN])
        else:
            state = mount.mount.state(event.handle)
        return FileRename(
            at=at,
            container=container,
            volume=key,
            path=path,
            target=new[1],
            handle=event.handle,
            directory=directory,
            children=children,
            state=state,
        )

    def _only_writer(self, key: str, mounts: list[tuple[Uid, WatchedMount]]) -> Uid | None:
        """The container that can only have been it, if the process ended before it was seen."""
        able = {
            uid
            for uid, one in mounts
            if one.planned.volume.key == key and not one.planned.read_only
        }
        if len(able) == 1:
            return able.pop()
        self._report(
            key,
            "which container removed or renamed a file",
            "its process ended before it was identified, and several containers write there",
        )
        return None


def list_files(mount: VolumeMount, handle: bytes, path: bytes) -> list[bytes]:
    """The regular files in a directory and below, relative to it; a little more than are followed.
    Symbolic links are not followed."""
    found: list[bytes] = []
    try:
        top = mount.open(handle, os.O_RDONLY | os.O_DIRECTORY, path)
    except OSError:
        return found
    try:
        for directory, _, names, descriptor in os.fwalk(b".", dir_fd=top):
            for name in names:
                mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode):
                    found.append(os.path.join(directory, name)[2:])
            if len(found) > MAX_CHILDREN:
                break
    except OSError:  # it changes while it is listed
        pass
    finally:
        os.close(top)
    return found


def _find(
    mounts: list[tuple[Uid, WatchedMount]], directory: bytes, name: bytes
) -> tuple[WatchedMount, bytes] | None:
    if directory:
        for _, one in mounts:
            path = one.mount.directory_path(directory)
            if path is not None:
                return one, b"%b/%b" % (path, name)
    return None

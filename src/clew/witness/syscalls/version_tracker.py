"""Decide which version of a path a process read or wrote, from the order of the trace, without IO.

A path has a history of versions. A read belongs to the version whose state it saw. A write starts
a new version, unless the same process is still writing one that was not read yet. It may turn out
only later that a process wrote a version (a shell opens a file that its child writes), so the
makers are final only at the end of the trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from clew.documents.ids import Digest
from clew.witness.syscalls.trace_format import FileStat


def file_stat_of(status: os.stat_result) -> FileStat:
    """The state of a file, from its `stat`."""
    return FileStat(
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


class KnownVersion(Struct, frozen=True):
    """The content of a reused version, from the execution that generated it."""

    digest: Digest
    size: int
    mode: int
    mtime: int
    kept: bool


class ObservedVersion(Struct, eq=False):
    """One version that the execution read or wrote."""

    path: bytes
    ordinal: int
    at: int
    maker: int | None
    """The image that wrote it; None: it existed before, or came from outside the execution."""
    file_stat: FileStat | None
    """Its last known state; None: not seen since it was written."""
    makers: dict[int, str] = field(default_factory=dict)
    """All images that wrote it, and how."""
    read: bool = False
    opened: FileStat | None = None
    """Its state when the maker opened it, if no write is known yet."""
    base: ObservedVersion | None = None
    """The version it was made from by appending or changing it in place."""
    is_base: bool = False
    """The next version was made from this one."""
    opener: int | None = None
    """The image that only opened it for a child to write, and is not among the makers."""
    inherited: FileStat | None = None
    """Its state when a child that writes it was last seen."""
    gone: bool = False
    closed: bool = False
    """Later writes of its maker start another version."""
    known: KnownVersion | None = None
    """Its content, if it was reused."""
    uncertain: bool = False
    """Read while a process had it mapped for writing: the bytes that were read are not known."""


class ProcessLifetimes:
    """The time at which each image had ended together with all its descendants."""

    def __init__(self) -> None:
        self.ended_at: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._alive: dict[int, int] = {}  # itself and its children that have not ended

    def add(self, image: int, parent: int) -> None:
        self._parents[image] = parent
        self._alive[image] = 1
        if parent in self._alive:
            self._alive[parent] += 1

    def end(self, image: int, at: int) -> None:
        while image in self._alive:
            self._alive[image] -= 1
            if self._alive[image]:
                return
            self.ended_at[image] = at
            image = self._parents[image]


def _same_file(observed: ObservedVersion | None, file_stat: FileStat) -> bool:
    """Whether `file_stat` is that of the file that its maker opened."""
    return (
        observed is not None
        and observed.opened is not None
        and observed.opened.inode_key == file_stat.inode_key
    )


class VersionTracker:
    """The version history of every path that the execution used."""

    def __init__(self) -> None:
        self._histories: dict[bytes, list[ObservedVersion]] = {}
        self._lifetimes = ProcessLifetimes()
        self._unclosed: dict[int, list[ObservedVersion]] = {}
        self._mappers: dict[tuple[int, int], set[int]] = {}

    def add_process(self, image: int, parent: int) -> None:
        self._lifetimes.add(image, parent)

    def end_process(self, image: int, at: int) -> None:
        """The image ended: it writes nothing any more."""
        self._lifetimes.end(image, at)

    def all_ended(self, images: Iterable[int], at: int) -> bool:
        """Whether these images and their descendants, which may have inherited their descriptors,
        had ended before `at`."""
        return all(self._lifetimes.ended_at.get(image, at) < at for image in images)

    def __iter__(self) -> Iterator[list[ObservedVersion]]:
        return iter(self._histories.values())

    def current(self, path: bytes) -> ObservedVersion | None:
        """The version that exists now, as far as the trace tells."""
        history = self._histories.get(path)
        return history[-1] if history and not history[-1].gone else None

    def add(
        self, path: bytes, *, at: int, maker: int | None, file_stat: FileStat | None
    ) -> ObservedVersion:
        history = self._histories.setdefault(path, [])
        observed = ObservedVersion(
            path=path, ordinal=len(history) + 1, at=at, maker=maker, file_stat=file_stat
        )
        history.append(observed)
        return observed

    def add_mapping(self, file_stat: FileStat, image: int) -> None:
        """The image mapped the file for writing: it may change without a new mtime."""
        self._mappers.setdefault(file_stat.inode_key, set()).add(image)

    def read(self, path: bytes, file_stat: FileStat | None, *, at: int) -> ObservedVersion:
        """The version that a read in this state belongs to."""
        if file_stat is None:
            return self.current(path) or self.add(path, at=at, maker=None, file_stat=None)
        history = self._histories.get(path)
        if not self._mappers:
            if history is None:
                return self.add(path, at=at, maker=None, file_stat=file_stat)
            if history[-1].file_stat is file_stat:
                return history[-1]  # the same state object as before: by far the most reads
        mappers = self._mappers.get(file_stat.inode_key, set())
        if mappers and not self.all_ended(mappers, at):
            return self._uncertain_version(path, mappers, at=at)
        return self._version_in_state(path, file_stat, at=at)

    def _version_in_state(self, path: bytes, file_stat: FileStat, *, at: int) -> ObservedVersion:
        """The version that had this state. If none had it, the file has changed: by its last
        writer in this execution, if that still ran, or from outside."""
        history = self._histories.get(path, [])
        last, key = self.current(path), file_stat.content_key
        for observed in reversed(history):
            if observed.file_stat is not None and observed.file_stat.content_key == key:
                observed.file_stat = file_stat  # its permissions may have changed
                return observed
            if (
                observed.gone
                and observed.file_stat is None
                and _same_file(observed, file_stat)
                and not _same_file(last, file_stat)
            ):
                observed.file_stat = file_stat  # deleted, but still read through an open descriptor
                return observed
        if last is None or last.maker is None or self.all_ended(last.makers, file_stat.ctime):
            return self.add(path, at=at, maker=None, file_stat=file_stat)
        if last.file_stat is None or not last.read:
            last.file_stat = file_stat
            return last
        return self.add_next(last, file_stat, at=at)

    def _uncertain_version(self, path: bytes, mappers: set[int], *, at: int) -> ObservedVersion:
        """The version that is being written through a mapping, whatever its current state is."""
        observed = self.current(path)
        if observed is None or observed.maker is None:
            observed = self.write(path, min(mappers), at=at, how="write", file_stat=None)
        observed.uncertain = True
        return observed

    def add_next(self, last: ObservedVersion, file_stat: FileStat, *, at: int) -> ObservedVersion:
        """The next version by the same makers: they went on writing after it was read."""
        observed = self.add(last.path, at=at, maker=last.maker, file_stat=file_stat)
        observed.makers = dict(last.makers)
        return observed

    def write(
        self, path: bytes, image: int, *, at: int, how: str, file_stat: FileStat | None
    ) -> ObservedVersion:
        """The version that this image writes; `file_stat` is its state right after the open."""
        last = self.current(path)
        if last is not None and last.maker == image and not last.read and not last.closed:
            return last
        observed = self.add(path, at=at, maker=image, file_stat=None)
        self._unclosed.setdefault(image, []).append(observed)
        observed.makers[image] = how
        observed.opened = file_stat
        return observed

    def close_versions(self, image: int) -> None:
        """Separate what a forked process wrote before its exec from what the program writes."""
        for observed in self._unclosed.pop(image, ()):
            observed.closed = True

    def inherit(
        self, path: bytes, image: int, parent: int, file_stat: FileStat | None, *, at: int
    ) -> ObservedVersion:
        """The version that an image can write through a descriptor inherited from its parent.

        If nothing was written since the parent opened it, the parent is not a maker: it opened
        the file for the child.
        """
        last = self.current(path)
        if last is None or last.maker is None or (last.read and image not in last.makers):
            return self.write(path, image, at=at, how="inherited", file_stat=file_stat)
        untouched = (
            last.opened is not None
            and file_stat is not None
            and file_stat.content_key == last.opened.content_key
        )
        if untouched and last.maker == parent and len(last.makers) == 1:
            last.makers.clear()
            last.opener, last.maker = parent, image
        last.makers.setdefault(image, "inherited")
        last.inherited = file_stat
        return last

"""Interpret changes of files: opens for writing, renames, links, deletions, new times and modes.

Each change makes a version, invalidates one, or both. What the program learnt by it (a file was
absent, or replaced) is an observation.
"""

import os
import re
import stat

from clew.witness.syscalls import trace_format
from clew.witness.syscalls.content_capture import is_file
from clew.witness.syscalls.directories import DirectoryChanges, DirectoryListings
from clew.witness.syscalls.observations import Observations
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.trace_state import TraceState
from clew.witness.syscalls.version_tracker import ObservedVersion

_OWN_STATE = re.compile(rb"/proc/\d+/")
"""What processes tell the kernel about themselves, such as their names: it is not recorded."""


class FileChanges:
    """Interprets the changes that one execution made."""

    def __init__(
        self, state: TraceState, observations: Observations, listings: DirectoryListings
    ) -> None:
        self._state = state
        self._versions = state.versions
        self._observations = observations
        self._listings = listings
        self._directory_changes = DirectoryChanges()

    def open_for_writing(self, record: trace_format.Open, path: bytes) -> None:
        if is_file(path):
            self._write_file(record, path)
        elif not _OWN_STATE.match(path):
            # A device, or a setting of the kernel: it is used, but never an output.
            version = self._versions.read(path, record.file_stat, at=record.at)
            self._state.record_use(record.image, version, "open", record.at)

    def _write_file(self, record: trace_format.Open, path: bytes) -> None:
        image, at, before = record.image, record.at, record.before
        if record.flags & os.O_CREAT:
            self._listings.add_change(path, record.seq, existed=before is not None)
        old: ObservedVersion | None = None
        if before is None or record.flags & os.O_EXCL:
            if record.flags & os.O_CREAT:
                self._observations.record(image, "absent", path, "ENOENT", at)
        elif record.flags & os.O_TRUNC:
            self._observations.record(image, "present", path, f"{before.mode:o}", at)
            replaced = self._versions.current(path)
            if replaced is not None and not (replaced.maker == image and not replaced.read):
                self._state.invalidate(image, replaced, "replace", at)
        elif before.size or record.flags & os.O_ACCMODE == os.O_RDWR:
            old = self._versions.read(path, before, at=at)
            if record.flags & os.O_ACCMODE == os.O_RDWR and (old.maker != image or old.read):
                self._state.record_use(image, old, "open", at)
        else:  # it existed and was empty
            times = f"{before.mode:o} {before.size} {before.mtime}"
            self._observations.record(image, "times", path, times, at)
        observed = self._versions.write(path, image, at=at, how="write", file_stat=record.file_stat)
        _set_base(observed, old)
        if record.flags & os.O_TMPFILE == os.O_TMPFILE:
            self._state.invalidate(
                image, observed, "delete", at
            )  # without a name until it is linked

    def change(self, record: trace_format.Change) -> None:
        image, path, at = record.image, record.path, record.at
        if self._observations.is_ignored(path):
            return
        if not is_file(path) and not record.path2:  # `link` may name a file as /proc/PID/fd/N
            return
        self._update_listings(record)
        for kind, where, answer in self._directory_changes.observe(record):
            self._observations.record(image, kind, where, answer, at)
        if record.what in (b"rename", b"link", b"exchange") and record.path2:
            self._move(record, record.path2)
        elif record.what == b"delete":
            old = self._versions.current(path)
            if record.before and not stat.S_ISDIR(record.before.mode):
                old = old or self._versions.read(path, record.before, at=at)
                self._state.invalidate(image, old, "delete", at)
        elif record.what == b"symlink":
            self._observations.record(image, "absent", path, "ENOENT", at)
            observed = self._versions.write(
                path, image, at=at, how="symlink", file_stat=record.after
            )
            observed.file_stat = record.after
        elif record.what == b"metadata" and record.before and stat.S_ISREG(record.before.mode):
            self._change_metadata(record)
        elif record.what == b"map" and record.before:
            self._versions.add_mapping(record.before, image)
        elif record.what == b"truncate":
            kept = record.before and record.before.size and record.after and record.after.size
            old = self._versions.read(path, record.before, at=at) if kept else None
            if record.before and not kept:
                self._observations.record(image, "present", path, f"{record.before.mode:o}", at)
            _set_base(
                self._versions.write(path, image, at=at, how="write", file_stat=record.after), old
            )

    def _update_listings(self, record: trace_format.Change) -> None:
        """Tell the directory listings which names this change adds or removes."""
        if record.what in (b"rename", b"delete"):
            self._listings.add_change(record.path, record.seq, existed=True)
        elif record.what in (b"symlink", b"folder", b"node"):
            self._listings.add_change(record.path, record.seq, existed=False)
        if record.what in (b"rename", b"link") and record.path2:
            known = self._versions.current(record.path2) is not None
            self._listings.add_change(record.path2, record.seq, existed=known)

    def _change_metadata(self, record: trace_format.Change) -> None:
        """New times or permissions make a new version, unless the current one is unread or this
        image's own."""
        old = self._versions.current(record.path)
        if (
            old is not None
            and old.maker is not None
            and (old.maker == record.image or not old.read)
        ):
            old.file_stat = record.after
            old.makers.setdefault(record.image, "metadata")
            return
        old = self._versions.read(record.path, record.before, at=record.at)
        self._state.record_use(record.image, old, "metadata", record.at)
        observed = self._versions.add(
            record.path, at=record.at, maker=record.image, file_stat=record.after
        )
        observed.makers[record.image] = "metadata"

    def _move(self, record: trace_format.Change, to: bytes) -> None:
        if record.before and stat.S_ISDIR(record.before.mode):
            return  # the trace has a record for each file in it
        old = self._version_before(record.path, record.before, record.at)
        if record.what == b"exchange":
            other = self._version_before(to, record.after, record.at)
            self._move_file(record, to, record.path, other, record.after)
            self._move_file(record, record.path, to, old, record.before)
        elif old.gone and record.what == b"link":  # it had no name until now
            new = self._versions.add(to, at=record.at, maker=record.image, file_stat=record.after)
            new.makers |= old.makers | {record.image: "link"}
        else:
            self._move_file(record, record.path, to, old, record.after)

    def _version_before(self, path: bytes, file_stat: FileStat | None, at: int) -> ObservedVersion:
        """The version that was at a path when its name was moved."""
        old = self._versions.current(path)
        if old is None or old.maker is None:
            return self._versions.read(path, file_stat, at=at)
        return old

    def _move_file(
        self,
        record: trace_format.Change,
        path: bytes,
        to: bytes,
        old: ObservedVersion,
        file_stat: FileStat | None,
    ) -> None:
        image, at, how = record.image, record.at, record.what.decode()
        self._state.record_use(image, old, how, at)
        replaced = self._versions.current(to)
        if replaced is not None and record.what == b"rename":
            self._state.invalidate(image, replaced, "replace", at)
        new = self._versions.add(to, at=at, maker=image, file_stat=file_stat or old.file_stat)
        new.makers[image] = how
        if record.what == b"link":
            self._state.aliases.add((path, to))
        elif record.what == b"rename":
            self._state.invalidate(image, old, "rename", at)


def _set_base(observed: ObservedVersion, old: ObservedVersion | None) -> None:
    if old is not None and old is not observed:
        observed.base = old
        old.is_base = True

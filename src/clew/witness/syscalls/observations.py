"""What it means to have seen something of a file, whoever saw it.

Most processes of an execution see the same, so each sight is thought through once.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from clew.prov.locators import file_locator
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.content_capture import is_file
from clew.witness.syscalls.symlinks import SymlinkResolver
from clew.witness.syscalls.trace_state import Fact, TraceContext, TraceState

_IGNORED_PATHS = (
    b"/memfd:",
    b"/dev/null",
    b"/dev/tty",
    b"/dev/zero",
    b"/dev/full",
    b"/dev/pts/",
    b"/dev/fd/",
)

_CALLER_ERRORS = frozenset(
    {
        *(errno.EINVAL, errno.ENAMETOOLONG, errno.EFAULT, errno.EBADF, errno.EINTR),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    }
)
"""Errors that tell of the call, not of the file."""

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
"""One fact, whatever was asked for."""


class OpenedFile(NamedTuple):
    """What opening a file for reading comes to."""

    path: bytes
    looked: Sequence[Fact] = ()
    used: str = ""
    """How its bytes were used; empty: they were not."""
    pipe: bool = False
    listed: bool = False


class Observations:
    """The sights of one execution, and the words for them."""

    def __init__(self, scene: TraceContext, story: TraceState, links: SymlinkResolver) -> None:
        self._machine = scene.machine
        self._ignore = scene.ignore + _IGNORED_PATHS
        self._story = story
        self._links = links
        self._opened: dict[int, OpenedFile] = {}
        self._locators: dict[bytes, str] = {}
        self.looked: dict[int, Sequence[Fact]] = {}
        """The facts of each look that was described, by its number."""

    def describe(self, record: trace_format.Look) -> None:
        """What was asked and told; nobody has seen it yet."""
        self.looked[record.number] = self._look(record)

    def opened(self, what: trace_format.Open) -> OpenedFile:
        found = self._opened.get(what.number)
        if found is None:
            found = self._opened[what.number] = self._open(what)
        return found

    def _look(self, record: trace_format.Look) -> Sequence[Fact]:
        links: Sequence[Fact] = ()
        if record.kind == trace_format.REALPATH and not record.error:
            links = self.links(record.path, record.target)
        told = None if self.ignored(normalize_path(record.path)) else _look_result(record)
        return links if told is None else (*links, *self.fact(told[0], record.path, told[1]))

    def _open(self, what: trace_format.Open) -> OpenedFile:
        path, facts = what.real or normalize_path(what.path), what.facts
        if self.ignored(path):
            return OpenedFile(path)
        links = self.links(what.path, what.real)
        if what.flags & os.O_PATH:
            return OpenedFile(path, (*links, *self.fact("present", what.path)))
        if facts and stat.S_ISDIR(facts.mode):
            return OpenedFile(path, links, listed=True)
        if facts and stat.S_ISFIFO(facts.mode):
            return OpenedFile(path, links, pipe=True)
        return OpenedFile(path, links, used="exec" if what.flags & trace_format.LOADED else "open")

    def ignored(self, path: bytes) -> bool:
        if path.startswith(self._ignore):
            return True
        return path.startswith(b"/proc/") and b"/cwd/" in path  # a folder that cannot be named

    def links(self, given: bytes, real: bytes | None) -> Sequence[Fact]:
        """The links on the way from a path as it was given to where it led."""
        if real is None or given == real:
            return ()
        found = self._links.between(given, real)
        self._story.links.update(found)
        return [fact for at, to in found for fact in self.fact("link", at, _target(to))]

    def fact(self, kind: str, path: bytes, answer: str = "") -> Sequence[Fact]:
        """One fact, or none where nothing is kept of what is there."""
        locator = self._locators.get(path)
        if locator is None:
            locator = file_locator(self._machine, path) if is_file(path) else ""
            self._locators[path] = locator
        return ((kind, locator, answer),) if locator else ()


def normalize_path(path: bytes) -> bytes:
    """Without `.`, `..` and doubled slashes, where no link can be in the way of that."""
    winding = b"//" in path or b"/./" in path or b"/../" in path or path.endswith((b"/.", b"/.."))
    return os.path.normpath(path) if winding else path


def _target(path: bytes) -> str:
    """Where a link leads, as a locator writes a path: text that loses nothing."""
    return file_locator("", path).removeprefix("file://")


def _look_result(record: trace_format.Look) -> tuple[str, str] | None:
    """The kind of fact, and the answer; None: nothing that tells of the file."""
    error, facts = record.error, record.facts
    if record.kind == trace_format.READLINK and error == errno.EINVAL:
        return "present", "plain"  # there, and no link
    if error in _CALLER_ERRORS:
        return None
    if error:
        asked = "" if error in _NOT_THERE else _permissions(record)
        return "absent", f"{errno.errorcode.get(error, error)} {asked}".rstrip()
    if record.kind == trace_format.READLINK:
        return "link", _target(record.target or b"")
    if record.kind == trace_format.STAT and facts:
        return "times", f"{facts.mode:o} {facts.size} {facts.mtime}"
    return "present", _permissions(record)


def _permissions(record: trace_format.Look) -> str:
    """What `access` was asked for: letters of `rwx`."""
    if record.kind != trace_format.ACCESS:
        return ""
    return "".join(letter for bit, letter in ((4, "r"), (2, "w"), (1, "x")) if record.flags & bit)

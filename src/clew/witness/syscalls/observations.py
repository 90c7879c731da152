"""Translate the opens and looks of a trace into observations.

The tracer numbers equal opens and looks, and most processes do the same ones; so each is translated
once and shared by all processes.
"""

import errno
import os
import stat
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from clew.documents.ids import Locator
from clew.prov.events import Observation
from clew.prov.locators import file_locator
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.content_capture import is_file
from clew.witness.syscalls.trace_state import TraceContext, TraceState

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
"""Errors of the call itself, which say nothing about the file."""

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
"""The same observation whichever permissions were asked for."""

_MAX_LINKS = 40  # as many as the kernel follows


class SymlinkResolver:
    """Finds the links between a path as it was given and the file it led to. Caches those of each
    directory: most paths share theirs."""

    def __init__(self, readlink: Callable[[bytes], bytes]) -> None:
        """`readlink` returns the target of a link, by its path as the command sees it."""
        self._readlink = readlink
        self._resolved: dict[bytes, tuple[bytes, tuple[tuple[bytes, bytes], ...]]] = {}

    def between(self, given: bytes, real: bytes | None) -> list[tuple[bytes, bytes]]:
        """(link, target) of each link that was followed; none if `given` no longer leads to
        `real`."""
        if real is None or given == real:
            return []
        directory, name = os.path.split(given)
        resolved, links = self._resolve(directory)
        followed = list(links)
        at = os.path.join(resolved, name)
        for _ in range(_MAX_LINKS):
            if at == real:
                return followed
            try:
                target = self._readlink(at)
            except OSError:
                return []
            followed.append((at, target))
            directory, name = os.path.split(os.path.join(os.path.dirname(at), target))
            resolved, links = self._resolve(directory)
            followed += links
            at = os.path.join(resolved, name)
        return []

    def _resolve(self, directory: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        known = self._resolved.get(directory)
        if known is None:
            known = self._resolved[directory] = self._walk(directory)
        return known

    def _walk(self, directory: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        links: list[tuple[bytes, bytes]] = []
        at, rest = b"/", [part for part in reversed(directory.split(b"/")) if part]
        while rest and len(links) < _MAX_LINKS:
            part = rest.pop()
            if part == b".":
                continue
            if part == b"..":
                at = os.path.dirname(at)
                continue
            path = os.path.join(at, part)
            try:
                target = self._readlink(path)
            except OSError:
                at = path
                continue
            links.append((path, target))
            if target.startswith(b"/"):
                at = b"/"
            rest += [piece for piece in reversed(target.split(b"/")) if piece]
        return at, tuple(links)


class OpenedFile(NamedTuple):
    """The result of opening a file for reading."""

    path: bytes
    looked: Sequence[Observation] = ()
    used: str = ""
    """How its bytes were used; empty: not at all."""
    pipe: bool = False
    listed: bool = False


class Observations:
    """The observations behind the numbered opens and looks of one execution."""

    def __init__(
        self, context: TraceContext, state: TraceState, readlink: Callable[[bytes], bytes]
    ) -> None:
        self._locate = context.locate
        self._ignore = context.ignore + _IGNORED_PATHS
        self._state = state
        self._resolver = SymlinkResolver(readlink)
        self._open_results: dict[int, OpenedFile] = {}
        self._locators: dict[bytes, Locator] = {}
        self.observations_of_look: dict[int, Sequence[Observation]] = {}
        """By the number of the look."""

    def add_look(self, record: trace_format.Look) -> None:
        self.observations_of_look[record.number] = self._look(record)

    def open_result(self, what: trace_format.Open) -> OpenedFile:
        result = self._open_results.get(what.number)
        if result is None:
            result = self._open_results[what.number] = self._open(what)
        return result

    def _look(self, record: trace_format.Look) -> Sequence[Observation]:
        links: Sequence[Observation] = ()
        if record.kind == trace_format.REALPATH and not record.error:
            links = self.observe_links(record.path, record.target)
        result = None if self.is_ignored(normalize_path(record.path)) else _look_result(record)
        return (
            links if result is None else (*links, *self.observe(result[0], record.path, result[1]))
        )

    def _open(self, what: trace_format.Open) -> OpenedFile:
        path, file_stat = what.real or normalize_path(what.path), what.file_stat
        if self.is_ignored(path):
            return OpenedFile(path)
        links = self.observe_links(what.path, what.real)
        if what.flags & os.O_PATH:
            return OpenedFile(path, (*links, *self.observe("present", what.path)))
        if file_stat and stat.S_ISDIR(file_stat.mode):
            return OpenedFile(path, links, listed=True)
        if file_stat and stat.S_ISFIFO(file_stat.mode):
            return OpenedFile(path, links, pipe=True)
        return OpenedFile(path, links, used="exec" if what.flags & trace_format.LOADED else "open")

    def is_ignored(self, path: bytes) -> bool:
        if path.startswith(self._ignore):
            return True
        return path.startswith(b"/proc/") and b"/cwd/" in path  # a directory without a path

    def observe_links(self, given: bytes, real: bytes | None) -> Sequence[Observation]:
        """The symbolic links between a path as it was given and the real path."""
        if real is None or given == real:
            return ()
        links = self._resolver.between(given, real)
        self._state.links.update(links)
        return [
            observation
            for at, to in links
            for observation in self.observe("link", at, _target_text(to))
        ]

    def record(self, image: int, kind: str, path: bytes, answer: str, at: int) -> None:
        """Record that an image made this observation."""
        for observation in self.observe(kind, path, answer):
            self._state.inputs_of_process[image].looked.setdefault(observation, at)

    def observe(self, kind: str, path: bytes, answer: str = "") -> Sequence[Observation]:
        """One observation, or none for paths that have no recorded content, such as `/proc`."""
        locator = self._locators.get(path)
        if locator is None:
            locator = self._locate(path) if is_file(path) else Locator("")
            self._locators[path] = locator
        return ((kind, locator, answer),) if locator else ()


def group_looks(
    looked: Mapping[Observation, int], used: Container[str]
) -> Iterator[tuple[int, list[Observation]]]:
    """What a process looked at one after the other with the same time, and this time. `used`: the
    locators of files that it read and no process changed, so that their existence is implied. A
    listing always comes first."""
    together: list[Observation] = []
    since = 0
    for observation, at in looked.items():
        kind, locator, answer = observation
        if kind == "present" and not answer and locator in used:
            continue
        if together and (at != since or kind == "listing"):
            yield since, together
            together = []
        since = at
        together.append(observation)
    if together:
        yield since, together


def normalize_path(path: bytes) -> bytes:
    """The path without `.`, `..` and double slashes (`normpath` keeps two leading ones)."""
    needed = b"//" in path or b"/./" in path or b"/../" in path or path.endswith((b"/.", b"/.."))
    return b"/" + os.path.normpath(path).lstrip(b"/") if needed else path


def _target_text(path: bytes) -> str:
    """The target of a link as lossless text, written as in a locator."""
    return file_locator("", path).removeprefix("file://")


def _look_result(record: trace_format.Look) -> tuple[str, str] | None:
    """The kind and the answer; None: the look says nothing about the file."""
    error, file_stat = record.error, record.file_stat
    if record.kind == trace_format.READLINK and error == errno.EINVAL:
        return "present", "plain"  # it exists and is not a link
    if error in _CALLER_ERRORS:
        return None
    if error:
        asked = "" if error in _NOT_THERE else _permissions(record)
        return "absent", f"{errno.errorcode.get(error, error)} {asked}".rstrip()
    if record.kind == trace_format.READLINK:
        return "link", _target_text(record.target or b"")
    if record.kind == trace_format.STAT and file_stat:
        return "times", f"{file_stat.mode:o} {file_stat.size} {file_stat.mtime}"
    return "present", _permissions(record)


def _permissions(record: trace_format.Look) -> str:
    """The permissions that `access` asked for: letters of `rwx`."""
    if record.kind != trace_format.ACCESS:
        return ""
    return "".join(letter for bit, letter in ((4, "r"), (2, "w"), (1, "x")) if record.flags & bit)

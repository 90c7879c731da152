"""Whether all that a unit depended on is so again: the files as they are now against its needs.

Contents, modes and names must be the same. So must the times of files that the run found; those
of files that it makes are new at every run, so of these only the order counts, as far as the unit
asked for it. The first need that does not hold is the answer, in words. The world is asked, never
changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

from clew.prov.locators import path_of
from clew.replay.reuse.subtree import Need, Unit


class World(Protocol):
    """The files as they are now."""

    def settle(self, path: bytes) -> bytes:
        """The path without links in the way to its last name."""

    def lstat(self, path: bytes) -> os.stat_result:
        """Of a settled path; OSError as the system says."""

    def stat(self, path: bytes) -> os.stat_result:
        """Links followed."""

    def link(self, path: bytes) -> bytes | None: ...

    def names(self, path: bytes) -> set[bytes] | None: ...

    def digest(self, path: bytes, status: os.stat_result) -> str | None: ...

    def found(self, status: os.stat_result) -> bool:
        """Whether the run found it so: nobody has touched it since."""


@dataclass
class Check:
    """A unit, and the world it is to fit into."""

    unit: Unit
    world: World
    names: Callable[[str], list[bytes]]
    """The names of a folder that was listed, by the answer."""
    before: Callable[[bytes, int], set[bytes]] | None
    """The names that a folder had, as far as the unit's run met them, at a moment; None: the world
    has others as well."""
    times: dict[int, int] = field(default_factory=dict)
    """What the times that it asked for have become."""

    @cached_property
    def _links(self) -> set[bytes]:
        """Paths that were links then."""
        return {need.path for need in self.unit.needs if need.kind == "link"}

    def unmet(self) -> str | None:
        """The first need that does not hold now; None: all do."""
        asked: set[tuple[str, bytes, str, str]] = set()
        for need in self.unit.needs:
            digest = need.version.digest if need.version else None
            key = (need.kind, need.path, need.answer, digest or "")
            if key in asked and not _of_folder(need):
                continue
            asked.add(key)
            why = self._unmet(need)
            if why is not None:
                return why
        return self._disorder()

    def _unmet(self, need: Need) -> str | None:
        path = self.world.settle(need.path)
        if path != need.path and self.unit.own(path, need.at):
            return None
        name = self._name(need.path)
        if need.kind == "bytes":
            return self._bytes(need, path, name)
        if need.kind == "link":
            target = path_of(f"file:///{need.answer}") or b"/"
            same = self.world.link(path) == target[1:]
            return None if same else f"the link {name} leads elsewhere"
        if need.kind in ("listing", "empty"):
            then = set(self.names(need.answer)) - {b""} if need.answer else set()
            now = self._names_now(path, need.at)
            return None if now == then else _renamed(name, then, now)
        try:
            found = self.world.lstat(path) if _of_link(need) else self.world.stat(need.path)
        except OSError as error:
            return _missing(need, error, name)
        return self._there(need, path, name, found)

    def _name(self, path: bytes) -> str:
        """As one would call it in its working folder."""
        cwd = os.fsencode(self.unit.root.cwd or "/").rstrip(b"/") + b"/"
        return path.removeprefix(cwd).decode(errors="replace")

    # -- bytes

    def _bytes(self, need: Need, path: bytes, name: str) -> str | None:
        version = need.version
        assert version is not None
        try:
            found = self.world.lstat(path)
        except OSError:
            return f"{name} is gone"
        if stat.S_ISLNK(found.st_mode) and stat.S_ISLNK(version.mode or 0):
            return None  # where it leads is a need of its own
        if (found.st_mode, found.st_size) != (version.mode, version.size):
            return f"{name} changed"
        if version.found and found.st_mtime_ns != version.mtime:
            return f"{name} changed"
        return None if self.world.digest(path, found) == version.digest else f"{name} changed"

    # -- looks

    def _there(self, need: Need, path: bytes, name: str, found: os.stat_result) -> str | None:
        if need.kind == "absent":
            error, _, asked = need.answer.partition(" ")
            denied = error == "EACCES" and asked and not _allowed(found, asked)
            return None if denied else f"{name} is there now"
        if need.kind == "present":
            return self._present(need.answer, path, name, found)
        if need.kind == "times":
            return self._times(need, path, name, found)
        return f"what it asked about {name} is not known here"

    def _present(self, answer: str, path: bytes, name: str, found: os.stat_result) -> str | None:
        if answer == "plain":
            return None if self.world.link(path) is None else f"{name} is a link now"
        same = int(answer, 8) == found.st_mode if answer[:1].isdigit() else _allowed(found, answer)
        return None if same else f"the mode of {name} changed"

    def _times(self, need: Need, path: bytes, name: str, found: os.stat_result) -> str | None:
        mode, size, mtime = need.answer.split(" ")
        if int(mode, 8) != found.st_mode:
            return f"the mode of {name} changed"
        if stat.S_ISDIR(found.st_mode):
            if self.world.link(path) is not None and need.path not in self._links:
                return f"{name} is a link now"
            return self._folder(need, path, name, same=found.st_mtime_ns == int(mtime))
        if stat.S_ISLNK(found.st_mode):  # nobody goes by the time of a link
            return None if found.st_size == int(size) else f"the link {name} leads elsewhere"
        same = found.st_mtime_ns == int(mtime) or self._made_again(path, need.at, found)
        if found.st_size != int(size) or not same:
            return f"{name} changed"
        return self._timed(int(mtime), found.st_mtime_ns, name)

    def _made_again(self, path: bytes, at: int, found: os.stat_result) -> bool:
        """Whether the run made it then, and has made the same now."""
        version = self.unit.ledger.made_by(path, at)
        if version is None or version.digest is None or self.world.found(found):
            return False
        return self.world.digest(path, found) == version.digest

    def _timed(self, then: int, now: int, name: str) -> str | None:
        known = self.times.setdefault(then, now)
        return None if known == now else f"the time of {name} changed"

    def _disorder(self) -> str | None:
        """Times that changed must have kept their order."""
        line = [now for _, now in sorted(self.times.items())]
        kept = all(a < b for a, b in pairwise(line))
        return None if kept else "the order changed in which files were made"

    # -- folders

    def _folder(self, need: Need, path: bytes, name: str, *, same: bool) -> str | None:
        """Its time says nothing but that names came or went; the names themselves say more."""
        mine = self.unit.deeds_in.get(path, ())
        if same or any(deed.at < need.at for deed in mine):
            return None
        if self.before is None:
            listed = any(n.kind == "listing" and n.path == need.path for n in self.unit.needs)
            return None if listed else f"names came or went in {name}"
        then, now = self.before(path, need.at), self._names_now(path, need.at)
        return None if then == now else _renamed(name, then, now)

    def _names_now(self, folder: bytes, at: int) -> set[bytes] | None:
        """The names it would have at that moment of the unit, if all went as it did then."""
        names = self.world.names(folder)
        if names is None:
            return None
        for deed in self.unit.deeds_in.get(folder, ()):
            if deed.at < at:
                name = os.path.basename(deed.path)
                names = names | {name} if deed.there else names - {name}
        return names


def _renamed(folder: str, then: set[bytes], now: set[bytes] | None) -> str:
    said = f"the names in {folder} changed"
    for names, what in (((now or set()) - then, "is new"), (then - (now or set()), "is gone")):
        if names:
            return f"{said}: {min(names).decode(errors='replace')} {what}"
    return said


def _of_link(need: Need) -> bool:
    return need.kind == "times" and stat.S_ISLNK(int(need.answer.split(" ")[0], 8))


def _of_folder(need: Need) -> bool:
    """Whether what it had done itself by then counts."""
    if need.kind == "times":
        return stat.S_ISDIR(int(need.answer.split(" ")[0], 8))
    return need.kind in ("listing", "empty")


def _missing(need: Need, error: OSError, name: str) -> str | None:
    if need.kind != "absent":
        return f"{name} is gone"
    same = errno.errorcode.get(error.errno or 0) == need.answer.split(" ")[0]
    return None if same else f"{name} cannot be looked at any more"


def _allowed(found: os.stat_result, asked: str) -> bool:
    """Whether its owner may; root may read and write regardless."""
    mode = found.st_mode
    if "x" in asked and not mode & 0o111:
        return False
    if os.geteuid() == 0:
        return True
    return not ("r" in asked and not mode & 0o400) and not ("w" in asked and not mode & 0o200)

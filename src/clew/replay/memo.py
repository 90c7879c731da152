"""Whether a program need be started again: is all it depended on still so?

A start is compared with a unit that the record knows (`clew.replay.subtrees`): the same words
are how it was found; then its variables, its descriptors and what else it inherits must be the
same, and every need must hold now. The first thing that does not is the answer, in words. Decided
without doing anything: the world is asked, never changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from clew.prov.locators import path_of
from clew.prov.questions.recorded import Activity, Recorded
from clew.prov.questions.shapes import STREAM
from clew.replay.subtrees import Need, Unit, shown
from clew.witness.secrets import MASK

_IDLE = 0.03
"""Seconds: a program that waited longer than that may have waited for others."""


@dataclass(frozen=True)
class Start:
    """A program that is about to be started."""

    program: str
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    held: list[list[Any]]
    standing: str | None
    others: int = 0
    """How many processes run beside it and those it came from."""


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


@dataclass(frozen=True)
class Question:
    """A unit, and what is asked about it."""

    unit: Unit
    world: World
    names: Callable[[str], list[bytes]]
    """The names of a folder that was listed, by the answer."""
    before: Callable[[bytes, int], set[bytes]] | None = None
    """The names that a folder had, as far as the unit's run met them, at a moment."""


def started_alike(unit: Unit, start: Start) -> str | None:
    """How the start differs from the one that is known; None: not at all."""
    why = _variables(variables(unit.record, unit.root), start.environment)
    if why is not None:
        return why
    if _telling(unit.record, unit.held) != _telling(None, start.held):
        return "its input or output goes elsewhere"
    if unit.root.facets["begun"].get("standing") != start.standing:
        return "its limits, signals or permissions changed"
    busy = (unit.over - unit.begun) / 1e9 - unit.idle
    if start.others and unit.idle > max(_IDLE, busy / 3):
        return "it waits, and others run meanwhile"
    return None


def unmet(question: Question) -> str | None:
    """The first need that does not hold now; None: all do."""
    asked: set[tuple[str, bytes, str, str]] = set()
    for need in question.unit.needs:
        digest = need.version.digest if need.version else None
        key = (need.kind, need.path, need.answer, digest or "")
        if key in asked and need.kind not in ("listing", "times", "empty"):
            continue
        asked.add(key)
        why = _unmet(question, need)
        if why is not None:
            return why
    return None


def variables(record: Recorded, process: Activity) -> dict[str, str]:
    """All variables of a process, as recorded."""
    whole = {**record.itself.environment, **process.environment}
    return {name: value for name, value in whole.items() if value is not None}


def _variables(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            return f"its variable {name} is not set any more"
        if name not in then:
            return f"its variable {name} is new"
        if then[name] != now[name]:
            return f"its variable {name} changed"
        if MASK in then[name]:
            return f"its variable {name} is secret, and was not recorded"
    return None


def _telling(record: Recorded | None, held: list[list[Any]]) -> list[list[Any]]:
    """Descriptors as far as they tell: an input with nothing in it is no input."""
    told = []
    for fd, way, name, *place in held:
        silent = fd == 0 and record is not None and _silent(record, name)
        told.append([0, 1, "/dev/null"] if silent else [fd, way, name, *place])
    return told


def _silent(record: Recorded, name: str) -> bool:
    """Whether nothing came: through a pipe, or from a terminal at which nobody typed."""
    if name == "stdin":
        locator = f"{STREAM}{record.execution.uid}/stdin"
        return not any(version.size for version in record.lines.get(locator, ()))
    return name in ("stdout", "stderr") and not record.facets.get("typed", 0)


# -- needs


def _unmet(question: Question, need: Need) -> str | None:
    world, unit = question.world, question.unit
    path = world.settle(need.path)
    if path != need.path and unit.own(path, need.at):
        return None
    name = shown(need.path)
    if need.kind == "bytes":
        return _bytes(world, need, path, name)
    if need.kind == "link":
        target = path_of(f"file:///{need.answer}") or b"/"
        return None if world.link(path) == target[1:] else f"the link {name} leads elsewhere"
    if need.kind in ("listing", "empty"):
        then = set(question.names(need.answer)) - {b""} if need.answer else set()
        now = _now(question, path, need.at)
        return None if now == then else f"the names in {name} changed"
    try:
        found = world.lstat(path) if _of_link(need) else world.stat(need.path)
    except OSError as error:
        return _missing(need, error, name)
    return _there(question, need, path, name, found)


def _of_link(need: Need) -> bool:
    return need.kind == "times" and stat.S_ISLNK(int(need.answer.split(" ")[0], 8))


def _missing(need: Need, error: OSError, name: str) -> str | None:
    if need.kind != "absent":
        return f"{name} is gone"
    same = errno.errorcode.get(error.errno or 0) == need.answer.split(" ")[0]
    return None if same else f"{name} cannot be looked at any more"


def _there(
    question: Question, need: Need, path: bytes, name: str, found: os.stat_result
) -> str | None:
    if need.kind == "absent":
        error, _, asked = need.answer.partition(" ")
        denied = error == "EACCES" and asked and not _allowed(found, asked)
        return None if denied else f"{name} is there now"
    if need.kind == "present":
        return _present(question.world, need.answer, path, name, found)
    if need.kind == "times":
        return _times(question, need, path, name, found)
    return f"what it asked about {name} is not known here"


def _present(
    world: World, answer: str, path: bytes, name: str, found: os.stat_result
) -> str | None:
    if answer == "plain":
        return None if world.link(path) is None else f"{name} is a link now"
    if answer[:1].isdigit():
        return None if int(answer, 8) == found.st_mode else f"the mode of {name} changed"
    return None if _allowed(found, answer) else f"the mode of {name} changed"


def _allowed(found: os.stat_result, asked: str) -> bool:
    """Whether its owner may; a folder, or root, is allowed to read and write regardless."""
    mode = found.st_mode
    if "x" in asked and not mode & 0o111:
        return False
    if os.geteuid() == 0:
        return True
    return not ("r" in asked and not mode & 0o400) and not ("w" in asked and not mode & 0o200)


def _times(
    question: Question, need: Need, path: bytes, name: str, found: os.stat_result
) -> str | None:
    mode, size, mtime = need.answer.split(" ")
    if int(mode, 8) != found.st_mode:
        return f"the mode of {name} changed"
    if stat.S_ISLNK(found.st_mode):  # nobody goes by the time of a link
        return None if found.st_size == int(size) else f"the link {name} leads elsewhere"
    if not stat.S_ISDIR(found.st_mode):
        same = (found.st_size, found.st_mtime_ns) == (int(size), int(mtime))
        return None if same else f"{name} changed"
    if found.st_mtime_ns == int(mtime) or _touched(question.unit, path, need.at):
        return None
    then = None if question.before is None else question.before(path, need.at)
    return None if then is not None and then == _now(question, path, need.at) else f"{name} changed"


def _touched(unit: Unit, folder: bytes, at: int) -> bool:
    """Whether the unit itself had let names come or go in it by then."""
    return any(deed.at < at for deed in unit.deeds_in.get(folder, ()))


def _now(question: Question, folder: bytes, at: int) -> set[bytes] | None:
    """The names it would have at that moment of the unit, if all went as it did then."""
    names = question.world.names(folder)
    if names is None:
        return None
    for deed in question.unit.deeds_in.get(folder, ()):
        if deed.at < at:
            name = os.path.basename(deed.path)
            names = names | {name} if deed.there else names - {name}
    return names


def _bytes(world: World, need: Need, path: bytes, name: str) -> str | None:
    version = need.version
    assert version is not None
    try:
        found = world.lstat(path)
    except OSError:
        return f"{name} is gone"
    if stat.S_ISLNK(found.st_mode) and stat.S_ISLNK(version.mode or 0):
        return None  # where it leads is a need of its own
    if (found.st_mode, found.st_size) != (version.mode, version.size):
        return f"{name} changed"
    if found.st_mtime_ns != version.mtime:
        same = world.digest(path, found) == version.digest
        return f"{name} was made again" if same else f"{name} changed"
    return None if world.digest(path, found) == version.digest else f"{name} changed"

"""Which version of a path a process met: decided from the order of what was seen, without IO.

A path has a line of versions. A read meets the one whose state it saw; a write begins a new
one, unless the same process is still writing one that nobody has read. A version may be known
to have been written by a process only later (a shell opens a file that its child writes), so
makers are settled at the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from clew.witness.syscalls.trace_format import Facts

ContentKey = tuple[int, int, int, int]


def key_of(facts: Facts) -> ContentKey:
    """What stays the same while the bytes do: a rename or a link changes only the ctime."""
    return facts[:4]


def facts_of(status: os.stat_result) -> Facts:
    """A file's state as the system tells it now."""
    return Facts(
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


class KnownVersion(Struct, frozen=True):
    """The content of a version that was not made again, but taken from where it was made."""

    digest: str
    size: int
    mode: int
    mtime: int
    kept: bool


class ObservedVersion(Struct, eq=False):
    """One version that the execution met."""

    path: bytes
    ordinal: int
    at: int
    maker: int | None
    """The image that made it; None: it was found."""
    facts: Facts | None
    """Its state when last seen; None: not seen since it was written."""
    makers: dict[int, str] = field(default_factory=dict)
    """All images that wrote it, and how."""
    read: bool = False
    opened: Facts | None = None
    """Its state when the maker opened it, while only the opening is known and no writing."""
    carries: ObservedVersion | None = None
    """The version whose bytes it keeps: it was appended to, or changed in place."""
    carried: bool = False
    """Its bytes live on in the next one."""
    opener: int | None = None
    """Who opened it for a child to write, and was taken for no writer."""
    inherited: Facts | None = None
    """Its state when a child that writes it was last seen."""
    gone: bool = False
    sealed: bool = False
    """What its maker writes to the path from now on is another version."""
    told: KnownVersion | None = None
    """Its content, where that is known from elsewhere."""
    blurred: bool = False
    """Read while a process could write it through memory: in which state, nobody can tell."""


class ProcessLifetimes:
    """When each image, and all that came of it, had ended."""

    def __init__(self) -> None:
        self.over: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._open: dict[int, int] = {}  # itself, and those of its children that are not over

    def born(self, image: int, parent: int) -> None:
        self._parents[image] = parent
        self._open[image] = 1
        if parent in self._open:
            self._open[parent] += 1

    def ended(self, image: int, at: int) -> None:
        while image in self._open:
            self._open[image] -= 1
            if self._open[image]:
                return
            self.over[image] = at
            image = self._parents[image]


def _same_file(met: ObservedVersion | None, facts: Facts) -> bool:
    """Whether its maker opened this very file."""
    return met is not None and met.opened is not None and met.opened[:2] == facts[:2]


class VersionTracker:
    """Every path the execution met, with its line of versions."""

    def __init__(self) -> None:
        self._lines: dict[bytes, list[ObservedVersion]] = {}
        self._lives = ProcessLifetimes()
        self._unsealed: dict[int, list[ObservedVersion]] = {}
        self._mappers: dict[tuple[int, int], set[int]] = {}

    def born(self, image: int, parent: int) -> None:
        self._lives.born(image, parent)

    def ended(self, image: int, at: int) -> None:
        """This image writes nothing any more."""
        self._lives.ended(image, at)

    def over(self, images: Iterable[int], at: int) -> bool:
        """Whether all of these, and whoever they handed their descriptors to, had ended by then."""
        return all(self._lives.over.get(image, at) < at for image in images)

    def __iter__(self) -> Iterator[list[ObservedVersion]]:
        return iter(self._lines.values())

    def current(self, path: bytes) -> ObservedVersion | None:
        """The version that is there now, as far as was seen."""
        line = self._lines.get(path)
        return line[-1] if line and not line[-1].gone else None

    def add(
        self, path: bytes, *, at: int, maker: int | None, facts: Facts | None
    ) -> ObservedVersion:
        line = self._lines.setdefault(path, [])
        met = ObservedVersion(path=path, ordinal=len(line) + 1, at=at, maker=maker, facts=facts)
        line.append(met)
        return met

    def mapped(self, facts: Facts, image: int) -> None:
        """From now on this image may write the file without its times saying so."""
        self._mappers.setdefault(facts[:2], set()).add(image)

    def read(self, path: bytes, facts: Facts | None, *, at: int) -> ObservedVersion:
        """The version a reader met."""
        if facts is None:
            return self.current(path) or self.add(path, at=at, maker=None, facts=None)
        line = self._lines.get(path)
        if not self._mappers:
            if line is None:
                return self.add(path, at=at, maker=None, facts=facts)
            if line[-1].facts is facts:
                return line[-1]  # the very state that others met: most reads by far
        mappers = self._mappers.get(facts[:2], set())
        if mappers and not self.over(mappers, at):
            return self._blurred(path, mappers, at=at)
        return self._in_state(path, facts, at=at)

    def _in_state(self, path: bytes, facts: Facts, *, at: int) -> ObservedVersion:
        """The version that had this state. One that no known version had means somebody changed
        it: its last writer here, who was not done, or somebody outside."""
        line = self._lines.get(path, [])
        last = self.current(path)
        for met in reversed(line):
            if met.facts is not None and key_of(met.facts) == key_of(facts):
                met.facts = facts  # its permissions may have changed unseen
                return met
            if (
                met.gone
                and met.facts is None
                and _same_file(met, facts)
                and not _same_file(last, facts)
            ):
                met.facts = facts  # it lost its name, and is read by who still holds it
                return met
        if last is None or last.maker is None or self.over(last.makers, facts.ctime):
            return self.add(path, at=at, maker=None, facts=facts)
        if last.facts is None or not last.read:
            last.facts = facts
            return last
        return self.again(last, facts, at=at)

    def _blurred(self, path: bytes, mappers: set[int], *, at: int) -> ObservedVersion:
        """The version in the making, whatever its state is at the moment."""
        met = self.current(path)
        if met is None or met.maker is None:
            met = self.write(path, min(mappers), at=at, how="write", facts=None)
        met.blurred = True
        return met

    def again(self, last: ObservedVersion, facts: Facts, *, at: int) -> ObservedVersion:
        """The next version by the same makers: they went on after somebody had read it."""
        met = self.add(last.path, at=at, maker=last.maker, facts=facts)
        met.makers = dict(last.makers)
        return met

    def write(
        self, path: bytes, image: int, *, at: int, how: str, facts: Facts | None
    ) -> ObservedVersion:
        """The version a writer makes; `facts` is its state right after the opening."""
        last = self.current(path)
        if last is not None and last.maker == image and not last.read and not last.sealed:
            return last
        met = self.add(path, at=at, maker=image, facts=None)
        self._unsealed.setdefault(image, []).append(met)
        met.makers[image] = how
        met.opened = facts
        return met

    def seal(self, image: int) -> None:
        """What a forked process wrote before it became a program of its own is not what the
        program writes, unless that was handed it open."""
        for met in self._unsealed.pop(image, ()):
            met.sealed = True

    def inherit(
        self, path: bytes, image: int, parent: int, facts: Facts | None, *, at: int
    ) -> ObservedVersion:
        """The version that a process holds open for writing because its parent opened it.

        As long as nothing was written since the opening, the parent only opened it for the child.
        """
        last = self.current(path)
        if last is None or last.maker is None or (last.read and image not in last.makers):
            return self.write(path, image, at=at, how="inherited", facts=facts)
        untouched = (
            last.opened is not None and facts is not None and key_of(facts) == key_of(last.opened)
        )
        if untouched and last.maker == parent and len(last.makers) == 1:
            last.makers.clear()
            last.opener, last.maker = parent, image
        last.makers.setdefault(image, "inherited")
        last.inherited = facts
        return last

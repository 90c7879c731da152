"""Whether a subtree of processes stands for itself: what it needed, and what it left.

Decided from the record alone. Where the record cannot tell, it is no unit, and why is said: a
unit that should not have been one would be a wrong result.
"""

from __future__ import annotations

import stat
from typing import Any

from clew.prov.locators import file_locator, path_of
from clew.prov.queries.execution_record import Activity, Edge, Version
from clew.prov.queries.formats import STREAM
from clew.replay.reuse.dependency_index import DEEDS, Deed, Ledger, above
from clew.replay.reuse.subtree import MACHINE, Handed, Left, Need, NotAlone, Unit, chain, shown
from clew.replay.traversed_directories import without_steps

_MEMORY = b"/dev/shm/"
_HARMLESS = (
    *(b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/tty", b"/dev/random", b"/dev/urandom"),
    *(b"/dev/fd", b"/dev/stdin", b"/dev/stdout", b"/dev/stderr", b"/dev/pts/", b"/dev/ptmx"),
    *(b"/dev/nvidia", b"/dev/dri/", b"/dev/kfd"),
)
"""Devices that keep nothing from one use to the next."""
_TELLING = frozenset({"set-uid"})
"""Gaps that tell of something which will be the same again."""
_SIGPIPE = 13


def unit(ledger: Ledger, root: Activity) -> Unit:
    """The subtree of `root`; NotAlone where it does not stand for itself."""
    return _Examination(ledger, root).result()


def reading(ledger: Ledger, root: Activity) -> Unit:
    """What a program needed, though it does not stand for itself: one that lived on, and forked
    processes that do."""
    return _Examination(ledger, root).reading()


class _Examination:
    def __init__(self, ledger: Ledger, root: Activity) -> None:
        begun = root.facets.get("begun")
        if begun is None:
            raise NotAlone("its record does not tell what it was started with")
        self._ledger = ledger
        self._record = ledger.record
        self._root = root
        self._facet: dict[str, Any] = begun
        self._begun: int = begun["at"]
        self._line = chain(ledger, root)
        self._members = self._subtree()
        self._over = self._line[-1].ended or 0

    def result(self) -> Unit:
        self._ends()
        self._connections()
        self._gaps()
        self._descriptors()
        output = self._output()
        self._deeds = self._own_deeds()
        handed = self._handed()
        leaves = self._leaves({one.path for one in handed})
        return Unit(
            ledger=self._ledger,
            root=self._root,
            members=self._members,
            begun=self._begun,
            over=self._over,
            status=self._line[-1].status or 0,
            needs=self._needs(),
            deeds=self._deeds,
            leaves=leaves,
            handed=handed,
            output=output,
            places=self._places(),
        )

    def reading(self) -> Unit:
        self._gaps()
        self._deeds = self._own_deeds()
        return Unit(
            ledger=self._ledger,
            root=self._root,
            members=self._members,
            begun=self._begun,
            over=self._over,
            status=0,
            needs=self._needs(),
            deeds=self._deeds,
            leaves={},
            handed=[],
            output={},
        )

    def _subtree(self) -> frozenset[int]:
        found = {self._root.key}
        waiting = [self._root.key]
        while waiting:
            below = [child.key for child in self._ledger.children[waiting.pop()]]
            found.update(below)
            waiting += below
        return frozenset(found)

    def _counts(self, activity: int, at: int) -> bool:
        """What a forked process did before it became the program is not the program's doing."""
        return activity != self._root.key or at >= self._begun

    def _own_deeds(self) -> list[Deed]:
        deeds: list[Deed] = []
        shared: list[Deed] = []
        for key in self._members:
            for deed in self._ledger.deeds[key]:
                if not self._counts(key, deed.at):
                    continue
                if deed.path.startswith(_MEMORY):
                    shared.append(deed)
                elif not deed.path.startswith(MACHINE):
                    deeds.append(deed)
                elif not deed.path.startswith((b"/proc/", *_HARMLESS)):
                    raise NotAlone(f"it writes to {shown(deed.path)}")
        self._kept_to_itself(shared)
        return sorted(deeds, key=lambda deed: (deed.at, deed.rank))

    def _kept_to_itself(self, shared: list[Deed]) -> None:
        """Shared memory that it alone had, and gave back, is nobody else's business."""
        last = {deed.path: deed for deed in sorted(shared, key=lambda deed: (deed.at, deed.rank))}
        for path, deed in last.items():
            if deed.there:
                raise NotAlone(f"it leaves {shown(path)} in shared memory")
            if self._ledger.disturbed(path, self._begun, self._over, self._members):
                raise NotAlone(f"it shares {shown(path)} with others")

    # -- what makes it one

    def _ends(self) -> None:
        if self._record.itself.ended is None:
            raise NotAlone("its execution was never recorded to its end")
        successors = {after.uid for after in self._record.processes}
        told = {a for a, _, _, via in self._record.informed if via == "signal"}
        for key in self._members:
            process = self._record.activities[key]
            stem, _, ordinal = process.uid.rpartition("-")
            if ordinal.isdigit() and f"{stem}-{int(ordinal) + 1}" in successors:
                continue
            if process.ended is None:
                raise NotAlone("the end of one of its processes was not seen")
            if process.ended > self._over:
                raise NotAlone("a process of it went on when it had ended")
            inside = process.signal == _SIGPIPE or key in told
            if process.signal is not None and (key == self._line[-1].key or not inside):
                raise NotAlone("a signal ended it")

    def _connections(self) -> None:
        for learnt, source, _, via in self._record.informed:
            if (learnt in self._members) != (source in self._members):
                raise NotAlone(_THROUGH.get(via, "it exchanges data with others"))

    def _gaps(self) -> None:
        for gap in self._record.gaps:
            if gap.what in _TELLING:
                continue
            if gap.activity in self._members or gap.what == "trace":
                raise NotAlone(f"not all of it was seen ({gap.what})")
        self._blind = {gap.locator for gap in self._record.gaps if gap.what == "content"}

    def _descriptors(self) -> None:
        ways: dict[str, int] = {}
        for _, way, name, *_ in self._facet["held"]:
            ways[name] = ways.get(name, 0) | way
        for name, way in ways.items():
            if name.startswith("socket:"):
                raise NotAlone("it has a socket from its parent")
            if name.startswith("pipe:") and way != 3:
                raise NotAlone("it reads a pipe" if way == 1 else "it writes to a pipe")

    def _output(self) -> dict[str, tuple[int, int]]:
        output: dict[str, tuple[int, int]] = {}
        for name in ("stdout", "stderr"):
            if not any(way & 2 and told == name for _, way, told, *_ in self._facet["held"]):
                continue
            stretches = []
            for process in self._line:
                begun = process.facets.get("begun", {})
                if any(told == name and way & 2 for _, way, told, *_ in begun.get("held", ())):
                    stretches.append(begun.get("output", {}).get(name))
            if not stretches or any(one is None for one in stretches):
                raise NotAlone("others printed while it did")
            first, last = stretches[0][0], stretches[-1][1]
            if first < last:
                self._printed(name, last)
                output[name] = first, last
        return output

    def _printed(self, name: str, until: int) -> None:
        line = self._record.lines.get(f"{STREAM}{self._record.execution.uid}/{name}", ())
        known = next((v for v in line if v.digest and v.stored and v.size is not None), None)
        if known is None or (known.size or 0) < until:
            raise NotAlone("what it printed was not kept")
        if name in self._record.facets.get("masked", ()):
            raise NotAlone("a secret was masked in what it printed")

    def _places(self) -> dict[int, int]:
        places = self._line[-1].facets.get("begun", {}).get("output", {}).get("places", {})
        for fd, _, name, *place in self._facet["held"]:
            if place and place[1] & 2 and len(self._line) > 1:
                raise NotAlone(f"how far it read {name} is not known")
            if str(fd) in places and places[str(fd)] < 0:
                raise NotAlone(f"how far it read {name} is not known")
        return {int(fd): place for fd, place in places.items()}

    # -- what it depended on

    def _needs(self) -> list[Need]:
        needs: list[Need] = []
        first: dict[bytes, int] = {}
        for deed in self._deeds:
            first.setdefault(deed.path, deed.at)

        def own(path: bytes, at: int) -> bool:
            return any(first.get(place, at) < at for place in above(path))

        for key in self._members:
            for edge in self._ledger.used[key]:
                if self._counts(key, edge.at):
                    need = self._use(edge)
                    if need is not None:
                        needs.append(need)
            for look in self._ledger.looked[key]:
                path = path_of(look.locator)
                if path is None or look.kind in DEEDS or not self._counts(key, look.at):
                    continue
                if path.startswith(MACHINE):
                    continue
                if look.kind == "listing" and not look.answer and not own(path, look.at):
                    raise NotAlone(f"the names in {shown(path)} were not kept")
                needs.append(Need(look.at, look.kind, path, look.answer, None))
        needs += self._removals()
        timed = {need.path for need in needs if need.kind == "times"}
        needs = [need for need in needs if not (need.path in timed and _in_the_way(need))]
        needs = without_steps(needs)
        needs.sort(key=lambda need: need.at)
        for need in needs:
            self._undisturbed(need)
        return [need for need in needs if not own(need.path, need.at)]

    def _removals(self) -> list[Need]:
        """What can be removed must be there; a folder, empty."""
        needs = []
        for deed in self._deeds:
            if deed.how == "removed":
                needs.append(Need(deed.at, "empty", deed.path, "", None))
            elif deed.how == "delete":
                needs.append(Need(deed.at, "present", deed.path, "", None))
        return needs

    def _undisturbed(self, need: Need) -> None:
        """Nobody else changed it while the unit might have looked."""
        by = self._ledger
        disturbed = by.disturbed(need.path, self._begun, need.at, self._members)
        if need.kind in ("listing", "times") and not disturbed:
            disturbed = by.entries_disturbed(need.path, self._begun, need.at, self._members)
        if disturbed:
            raise NotAlone(f"{shown(need.path)} was changed by others while it ran")

    def _use(self, edge: Edge) -> Need | None:
        version = self._record.versions[edge.version]
        path = self._ledger.paths[edge.version]
        if path is None:
            if version.locator.startswith(STREAM):
                return None  # its descriptors tell
            raise NotAlone("it uses the network")
        makers = self._ledger.makers.get(edge.version, {})
        inside = [by for by, made in makers.items() if by in self._members]
        if path.startswith(MACHINE):
            own = path.startswith(_MEMORY) and inside
            if path.startswith(b"/dev/") and not path.startswith(_HARMLESS) and not own:
                raise NotAlone(f"it uses {shown(path)}")
            return None
        if any(self._counts(by, makers[by].at) for by in inside):
            return None  # its own
        known = self._ledger.known(version)
        if version.locator in self._blind or known.digest is None:
            raise NotAlone(f"the bytes of {shown(path)} were not kept")
        self._over_before(makers, path)
        return Need(edge.at, "bytes", path, "", known)

    def _over_before(self, makers: dict[int, Edge], path: bytes) -> None:
        """Who made it was done, or is what the unit came from: then it did not grow meanwhile."""
        ancestors = set()
        process = self._root
        while process.parent in self._record.activities:
            process = self._record.activities[process.parent]
            ancestors.add(process.key)
        for by, made in makers.items():
            ended = self._record.activities[by].ended
            still = by not in self._members and by not in ancestors
            if made.at > self._begun or (still and (ended is None or ended > self._begun)):
                raise NotAlone(f"{shown(path)} was written while it ran")

    # -- what it left

    def _handed(self) -> list[Handed]:
        handed = []
        for fd, way, name, *place in self._facet["held"]:
            if not place or not way & 2:
                continue
            path = path_of(f"file://{name}") or b""
            if way == 3 or any(deed.path == path and deed.rank != 1 for deed in self._deeds):
                raise NotAlone(f"it reads and writes {shown(path)}, which it was handed")
            at, flags, size = place
            handed.append(self._one_handed(fd, path, at, size if flags & 1 else None))
        if len({one.path for one in handed}) != len(handed):
            raise NotAlone("it was handed one file twice")
        return handed

    def _one_handed(self, fd: int, path: bytes, at: int, size: int | None) -> Handed:
        """`size`: how large it was, if it is only appended to."""
        line = self._record.lines.get(self._locator(path), ())
        mine = [v for v in line if self._members & self._ledger.makers.get(v.key, {}).keys()]
        if not mine:
            raise NotAlone(f"what it wrote to {shown(path)} is not known")
        version = mine[-1]
        self._kept(version, path)
        if size is None and (at or self._carried(version)):
            raise NotAlone(f"it goes on in {shown(path)}, which others began")
        return Handed(fd, path, version, size or 0)

    def _carried(self, version: Version) -> list[Version]:
        """The versions at the same path whose bytes it keeps."""
        found = []
        for key in self._members:
            for edge in self._ledger.used[key]:
                old = self._record.versions[edge.version]
                same = old.locator == version.locator and old.key != version.key
                if edge.how == "append" and same:
                    found.append(old)
        return found

    def _leaves(self, handed: set[bytes]) -> dict[bytes, Left]:
        leaves: dict[bytes, Left] = {}
        fresh: set[bytes] = set()
        for deed in self._deeds:
            if deed.path in handed:
                continue
            if deed.how in ("rename", "exchange", "symlink", "delete"):
                fresh.add(deed.path)
            if not deed.there:
                leaves[deed.path] = Left("gone")
            elif deed.version is None:
                leaves[deed.path] = Left("folder", deed.mode, mtime=deed.mtime)
            else:
                version = self._record.versions[deed.version]
                leaves[deed.path] = Left("file", 0, version, deed.path not in fresh)
        for path, left in leaves.items():
            if self._ledger.disturbed(path, self._begun, self._over, self._members):
                raise NotAlone(f"{shown(path)} was changed by others while it ran")
            leaves[path] = self._settled(path, left)
        return leaves

    def _settled(self, path: bytes, left: Left) -> Left:
        if left.kind == "folder" and not stat.S_ISDIR(left.mode):
            raise NotAlone(f"{shown(path)} is a pipe or a device")
        if left.version is None:
            return left
        mode = self._kept(left.version, path)
        makers = self._ledger.makers.get(left.version.key, {})
        if any(edge.how == "link" for edge in makers.values()):
            raise NotAlone(f"{shown(path)} is a second name of a file")
        kind = "link" if stat.S_ISLNK(mode) else "file"
        return left._replace(kind=kind, mode=stat.S_IMODE(mode))

    def _kept(self, version: Version, path: bytes) -> int:
        """The mode of a version that is known whole, and that nobody else had a hand in."""
        if not self._ledger.makers.get(version.key, {}).keys() <= self._members:
            raise NotAlone(f"others wrote to {shown(path)} as well")
        if version.locator in self._blind or version.digest is None or not version.stored:
            raise NotAlone(f"what it wrote to {shown(path)} was not kept")
        if version.mode is None or version.mtime is None:
            raise NotAlone(f"what it wrote to {shown(path)} was not kept")
        return version.mode

    def _locator(self, path: bytes) -> str:
        return file_locator(str(self._record.facets.get("machine", "")), path)


def _in_the_way(need: Need) -> bool:
    """A refusal because of what is there: that it is there, in this state, tells it better."""
    return need.kind == "absent" and need.answer != "ENOENT"


_THROUGH = {
    "pipe": "it is one end of a pipe",
    "socket": "it talks through a socket",
    "signal": "a signal passes between it and others",
}

"""Analyze whether a subtree of processes can be reused: what it depended on, and what it left.

Decided from the record alone. In doubt the subtree is not reusable, because reusing it wrongly
would give a wrong result; `NotReusable` says why.
"""

from __future__ import annotations

import stat
from typing import Any

from clew.prov.locators import file_locator, path_of
from clew.prov.queries.execution_record import Activity, Edge, Version
from clew.prov.queries.formats import STREAM
from clew.replay.reuse.dependency_index import (
    CHANGE_KINDS,
    DependencyIndex,
    PathChange,
    path_and_parents,
)
from clew.replay.reuse.subtree import (
    Dependency,
    InheritedFile,
    NotReusable,
    Output,
    Subtree,
    display_path,
    exec_chain,
)
from clew.replay.traversed_directories import drop_traversals
from clew.safe_path import KERNEL_DIRECTORIES

_SHARED_MEMORY = b"/dev/shm/"
_STATELESS_DEVICES = (
    *(b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/tty", b"/dev/random", b"/dev/urandom"),
    *(b"/dev/fd", b"/dev/stdin", b"/dev/stdout", b"/dev/stderr", b"/dev/pts/", b"/dev/ptmx"),
    *(b"/dev/nvidia", b"/dev/dri/", b"/dev/kfd"),
)
"""Devices that keep nothing from one use to the next."""
_HARMLESS_GAPS = frozenset({"set-uid"})
"""Gaps in the record that do not change the result."""
_SIGPIPE = 13


def analyze_subtree(index: DependencyIndex, root: Activity) -> Subtree:
    """Analyze the subtree of `root`; raises NotReusable."""
    return _Analysis(index, root).result()


def analyze_inputs(index: DependencyIndex, root: Activity) -> Subtree:
    """Find what a program depended on although it is not reusable itself: a worker that keeps
    running and forks processes that are."""
    return _Analysis(index, root).reading()


class _Analysis:
    def __init__(self, index: DependencyIndex, root: Activity) -> None:
        begun = root.facets.get("begun")
        if begun is None:
            raise NotReusable("its record does not tell what it was started with")
        self._index = index
        self._record = index.record
        self._root = root
        self._facet: dict[str, Any] = begun
        self._begun: int = begun["at"]
        self._line = exec_chain(index, root)
        self._members = self._subtree()
        self._over = self._line[-1].ended or 0

    def result(self) -> Subtree:
        self._ends()
        self._connections()
        self._gaps()
        self._descriptors()
        printed = self._printed_ranges()
        self._changes = self._find_changes()
        handed = self._handed()
        outputs = self._leaves({one.path for one in handed})
        return Subtree(
            index=self._index,
            root=self._root,
            members=self._members,
            started=self._begun,
            ended=self._over,
            status=self._line[-1].status or 0,
            dependencies=self._needs(),
            changes=self._changes,
            outputs=outputs,
            handed=handed,
            printed=printed,
            offsets=self._offsets(),
        )

    def reading(self) -> Subtree:
        self._gaps()
        self._changes = self._find_changes()
        return Subtree(
            index=self._index,
            root=self._root,
            members=self._members,
            started=self._begun,
            ended=self._over,
            status=0,
            dependencies=self._needs(),
            changes=self._changes,
            outputs={},
            handed=[],
            printed={},
        )

    def _subtree(self) -> frozenset[int]:
        found = {self._root.key}
        waiting = [self._root.key]
        while waiting:
            below = [child.key for child in self._index.children[waiting.pop()]]
            found.update(below)
            waiting += below
        return frozenset(found)

    def _counts(self, activity: int, at: int) -> bool:
        """Ignore what a forked process did before it executed the program."""
        return activity != self._root.key or at >= self._begun

    def _find_changes(self) -> list[PathChange]:
        changes: list[PathChange] = []
        shared: list[PathChange] = []
        for key in self._members:
            for change in self._index.changes[key]:
                if not self._counts(key, change.at):
                    continue
                if change.path.startswith(_SHARED_MEMORY):
                    shared.append(change)
                elif not change.path.startswith(KERNEL_DIRECTORIES):
                    changes.append(change)
                elif not change.path.startswith((b"/proc/", *_STATELESS_DEVICES)):
                    raise NotReusable(f"it writes to {display_path(change.path)}")
        self._kept_to_itself(shared)
        return sorted(changes, key=lambda change: (change.at, change.rank))

    def _kept_to_itself(self, shared: list[PathChange]) -> None:
        """Shared memory is fine if only the subtree used it and removed it again."""
        last = {
            change.path: change
            for change in sorted(shared, key=lambda change: (change.at, change.rank))
        }
        for path, change in last.items():
            if change.there:
                raise NotReusable(f"it leaves {display_path(path)} in shared memory")
            if self._index.changed_by_others(path, self._begun, self._over, self._members):
                raise NotReusable(f"it shares {display_path(path)} with others")

    # -- what makes it one

    def _ends(self) -> None:
        if self._record.itself.ended is None:
            raise NotReusable("its execution was never recorded to its end")
        successors = {after.uid for after in self._record.processes}
        told = {a for a, _, _, via in self._record.informed if via == "signal"}
        for key in self._members:
            process = self._record.activities[key]
            stem, _, ordinal = process.uid.rpartition("-")
            if ordinal.isdigit() and f"{stem}-{int(ordinal) + 1}" in successors:
                continue
            if process.ended is None:
                raise NotReusable("the end of one of its processes was not seen")
            if process.ended > self._over:
                raise NotReusable("a process of it went on when it had ended")
            inside = process.signal == _SIGPIPE or key in told
            if process.signal is not None and (key == self._line[-1].key or not inside):
                raise NotReusable("a signal ended it")

    def _connections(self) -> None:
        for learnt, source, _, via in self._record.informed:
            if (learnt in self._members) != (source in self._members):
                raise NotReusable(_CONNECTION_REASONS.get(via, "it exchanges data with others"))

    def _gaps(self) -> None:
        for gap in self._record.gaps:
            if gap.what in _HARMLESS_GAPS:
                continue
            if gap.activity in self._members or gap.what == "trace":
                raise NotReusable(f"not all of it was seen ({gap.what})")
        self._blind = {gap.locator for gap in self._record.gaps if gap.what == "content"}

    def _descriptors(self) -> None:
        ways: dict[str, int] = {}
        for _, way, name, *_ in self._facet["held"]:
            ways[name] = ways.get(name, 0) | way
        for name, way in ways.items():
            if name.startswith("socket:"):
                raise NotReusable("it has a socket from its parent")
            if name.startswith("pipe:") and way != 3:
                raise NotReusable("it reads a pipe" if way == 1 else "it writes to a pipe")

    def _printed_ranges(self) -> dict[str, tuple[int, int]]:
        ranges: dict[str, tuple[int, int]] = {}
        for name in ("stdout", "stderr"):
            if not any(way & 2 and told == name for _, way, told, *_ in self._facet["held"]):
                continue
            stretches = []
            for process in self._line:
                begun = process.facets.get("begun", {})
                if any(told == name and way & 2 for _, way, told, *_ in begun.get("held", ())):
                    stretches.append(begun.get("output", {}).get(name))
            if not stretches or any(one is None for one in stretches):
                raise NotReusable("others printed while it did")
            first, last = stretches[0][0], stretches[-1][1]
            if first < last:
                self._check_printed(name, last)
                ranges[name] = first, last
        return ranges

    def _check_printed(self, name: str, until: int) -> None:
        line = self._record.lines.get(f"{STREAM}{self._record.execution.uid}/{name}", ())
        known = next((v for v in line if v.digest and v.stored and v.size is not None), None)
        if known is None or (known.size or 0) < until:
            raise NotReusable("what it printed was not kept")
        if name in self._record.facets.get("masked", ()):
            raise NotReusable("a secret was masked in what it printed")

    def _offsets(self) -> dict[int, int]:
        places = self._line[-1].facets.get("begun", {}).get("output", {}).get("places", {})
        for fd, _, name, *place in self._facet["held"]:
            if place and place[1] & 2 and len(self._line) > 1:
                raise NotReusable(f"how far it read {name} is not known")
            if str(fd) in places and places[str(fd)] < 0:
                raise NotReusable(f"how far it read {name} is not known")
        return {int(fd): place for fd, place in places.items()}

    # -- what it depended on

    def _needs(self) -> list[Dependency]:
        dependencies: list[Dependency] = []
        first: dict[bytes, int] = {}
        for change in self._changes:
            first.setdefault(change.path, change.at)

        def own(path: bytes, at: int) -> bool:
            return any(first.get(place, at) < at for place in path_and_parents(path))

        for key in self._members:
            for edge in self._index.used[key]:
                if self._counts(key, edge.at):
                    dependency = self._use(edge)
                    if dependency is not None:
                        dependencies.append(dependency)
            for look in self._index.looked[key]:
                path = path_of(look.locator)
                if path is None or look.kind in CHANGE_KINDS or not self._counts(key, look.at):
                    continue
                if path.startswith(KERNEL_DIRECTORIES):
                    continue
                if look.kind == "listing" and not look.answer and not own(path, look.at):
                    raise NotReusable(f"the names in {display_path(path)} were not kept")
                dependencies.append(Dependency(look.at, look.kind, path, look.answer, None))
        dependencies += self._removals()
        timed = {dependency.path for dependency in dependencies if dependency.kind == "times"}
        dependencies = [
            dependency
            for dependency in dependencies
            if not (dependency.path in timed and _is_obstructed(dependency))
        ]
        dependencies = drop_traversals(dependencies)
        dependencies.sort(key=lambda dependency: dependency.at)
        for dependency in dependencies:
            self._undisturbed(dependency)
        return [
            dependency for dependency in dependencies if not own(dependency.path, dependency.at)
        ]

    def _removals(self) -> list[Dependency]:
        """A removed path must exist again; a removed directory must be empty."""
        dependencies = []
        for change in self._changes:
            if change.how == "removed":
                dependencies.append(Dependency(change.at, "empty", change.path, "", None))
            elif change.how == "delete":
                dependencies.append(Dependency(change.at, "present", change.path, "", None))
        return dependencies

    def _undisturbed(self, dependency: Dependency) -> None:
        """Check that no process outside the subtree changed the path before the subtree looked at
        it."""
        by = self._index
        disturbed = by.changed_by_others(dependency.path, self._begun, dependency.at, self._members)
        if dependency.kind in ("listing", "times") and not disturbed:
            disturbed = by.entries_changed_by_others(
                dependency.path, self._begun, dependency.at, self._members
            )
        if disturbed:
            raise NotReusable(f"{display_path(dependency.path)} was changed by others while it ran")

    def _use(self, edge: Edge) -> Dependency | None:
        version = self._record.versions[edge.version]
        path = self._index.paths[edge.version]
        if path is None:
            if version.locator.startswith(STREAM):
                return None  # its descriptors tell
            raise NotReusable("it uses the network")
        makers = self._index.makers.get(edge.version, {})
        inside = [by for by, made in makers.items() if by in self._members]
        if path.startswith(KERNEL_DIRECTORIES):
            own = path.startswith(_SHARED_MEMORY) and inside
            if path.startswith(b"/dev/") and not path.startswith(_STATELESS_DEVICES) and not own:
                raise NotReusable(f"it uses {display_path(path)}")
            return None
        if any(self._counts(by, makers[by].at) for by in inside):
            return None  # its own
        known = self._index.with_content(version)
        if version.locator in self._blind or known.digest is None:
            raise NotReusable(f"the bytes of {display_path(path)} were not kept")
        self._over_before(makers, path)
        return Dependency(edge.at, "bytes", path, "", known)

    def _over_before(self, makers: dict[int, Edge], path: bytes) -> None:
        """Check that no process outside the subtree was still writing the file while it ran."""
        ancestors = set()
        process = self._root
        while process.parent in self._record.activities:
            process = self._record.activities[process.parent]
            ancestors.add(process.key)
        for by, made in makers.items():
            ended = self._record.activities[by].ended
            still = by not in self._members and by not in ancestors
            if made.at > self._begun or (still and (ended is None or ended > self._begun)):
                raise NotReusable(f"{display_path(path)} was written while it ran")

    # -- what it left

    def _handed(self) -> list[InheritedFile]:
        handed = []
        for fd, way, name, *place in self._facet["held"]:
            if not place or not way & 2:
                continue
            path = path_of(f"file://{name}") or b""
            if way == 3 or any(
                change.path == path and change.rank != 1 for change in self._changes
            ):
                raise NotReusable(f"it reads and writes {display_path(path)}, which it was handed")
            at, flags, size = place
            handed.append(self._one_handed(fd, path, at, size if flags & 1 else None))
        if len({one.path for one in handed}) != len(handed):
            raise NotReusable("it was handed one file twice")
        return handed

    def _one_handed(self, fd: int, path: bytes, at: int, size: int | None) -> InheritedFile:
        """`size`: the size before, if the file is only appended to."""
        line = self._record.lines.get(self._locator(path), ())
        mine = [v for v in line if self._members & self._index.makers.get(v.key, {}).keys()]
        if not mine:
            raise NotReusable(f"what it wrote to {display_path(path)} is not known")
        version = mine[-1]
        self._kept(version, path)
        if size is None and (at or self._carried(version)):
            raise NotReusable(f"it goes on in {display_path(path)}, which others began")
        return InheritedFile(fd, path, version, size or 0)

    def _carried(self, version: Version) -> list[Version]:
        """The earlier versions of the same path whose bytes the version keeps."""
        found = []
        for key in self._members:
            for edge in self._index.used[key]:
                old = self._record.versions[edge.version]
                same = old.locator == version.locator and old.key != version.key
                if edge.how == "append" and same:
                    found.append(old)
        return found

    def _leaves(self, handed: set[bytes]) -> dict[bytes, Output]:
        outputs: dict[bytes, Output] = {}
        fresh: set[bytes] = set()
        for change in self._changes:
            if change.path in handed:
                continue
            if change.how in ("rename", "exchange", "symlink", "delete"):
                fresh.add(change.path)
            if not change.there:
                outputs[change.path] = Output("gone")
            elif change.version is None:
                outputs[change.path] = Output("directory", change.mode, mtime=change.mtime)
            else:
                version = self._record.versions[change.version]
                outputs[change.path] = Output("file", 0, version, change.path not in fresh)
        for path, left in outputs.items():
            if self._index.changed_by_others(path, self._begun, self._over, self._members):
                raise NotReusable(f"{display_path(path)} was changed by others while it ran")
            outputs[path] = self._settled(path, left)
        return outputs

    def _settled(self, path: bytes, left: Output) -> Output:
        if left.kind == "directory" and not stat.S_ISDIR(left.mode):
            raise NotReusable(f"{display_path(path)} is a pipe or a device")
        if left.version is None:
            return left
        mode = self._kept(left.version, path)
        makers = self._index.makers.get(left.version.key, {})
        if any(edge.how == "link" for edge in makers.values()):
            raise NotReusable(f"{display_path(path)} is a second name of a file")
        kind = "link" if stat.S_ISLNK(mode) else "file"
        return left._replace(kind=kind, mode=stat.S_IMODE(mode))

    def _kept(self, version: Version, path: bytes) -> int:
        """Return the mode of a version whose content is stored and that no other process wrote."""
        if not self._index.makers.get(version.key, {}).keys() <= self._members:
            raise NotReusable(f"others wrote to {display_path(path)} as well")
        if version.locator in self._blind or version.digest is None or not version.stored:
            raise NotReusable(f"what it wrote to {display_path(path)} was not kept")
        if version.mode is None or version.mtime is None:
            raise NotReusable(f"what it wrote to {display_path(path)} was not kept")
        return version.mode

    def _locator(self, path: bytes) -> str:
        return file_locator(str(self._record.facets.get("machine", "")), path)


def _is_obstructed(dependency: Dependency) -> bool:
    """An error caused by an existing file. Its recorded state says more."""
    return dependency.kind == "absent" and dependency.answer != "ENOENT"


_CONNECTION_REASONS = {
    "pipe": "it is one end of a pipe",
    "socket": "it talks through a socket",
    "signal": "a signal passes between it and others",
}

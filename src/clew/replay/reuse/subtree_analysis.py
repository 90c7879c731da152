"""Analyze whether a subtree of processes can be reused: what it depended on, and what it left.

Decided from the record alone. In doubt the subtree is not reusable, because reusing it wrongly
would give a wrong result; `NotReusable` says why.
"""

import stat
from collections.abc import Iterable
from typing import Any

from clew.documents.ids import Locator
from clew.prov.locators import file_locator, path_of, stream_locator
from clew.prov.queries.execution_record import Activity, Version
from clew.replay.reuse.dependency_index import DependencyIndex, PathChange
from clew.replay.reuse.subtree import (
    InheritedFile,
    NotReusable,
    Output,
    Subtree,
    SubtreeScope,
    display_path,
)
from clew.replay.reuse.subtree_dependencies import (
    SHARED_MEMORY,
    STATELESS_DEVICES,
    DependencyFinder,
)
from clew.safe_path import KERNEL_DIRECTORIES

_HARMLESS_GAPS = frozenset({"set-uid"})
"""Gaps in the record that do not change the result."""
_SIGPIPE = 13
_CONNECTION_REASONS = {
    "pipe": "it is one end of a pipe",
    "socket": "it communicates through a socket",
    "signal": "a signal passes between it and others",
}


def analyze_subtree(index: DependencyIndex, root: Activity) -> Subtree:
    """Analyze the subtree of `root`; raises NotReusable."""
    return _Analysis(index, root).analyze()


def analyze_inputs(index: DependencyIndex, root: Activity) -> Subtree:
    """Find what a program depended on although it is not reusable itself: a worker that keeps
    running and forks processes that are."""
    return _Analysis(index, root).analyze_inputs()


class _Analysis:
    def __init__(self, index: DependencyIndex, root: Activity) -> None:
        begun = root.facets.get("begun")
        if begun is None:
            raise NotReusable("how it was started is not recorded")
        self._index = index
        self._record = index.record
        self._held: list[list[Any]] = begun["held"]
        self._chain = index.exec_chain(root)
        self._scope = SubtreeScope(
            index, root, _find_members(index, root), begun["at"], self._chain[-1].ended or 0
        )
        self._members = self._scope.members

    def analyze(self) -> Subtree:
        self._check_ends()
        self._check_connections()
        self._check_gaps()
        self._check_descriptors()
        printed = self._printed_ranges()
        self._changes = self._find_changes()
        handed = self._inherited_files()
        return self._result(
            status=self._chain[-1].status or 0,
            outputs=self._outputs({file.path for file in handed}),
            handed=handed,
            printed=printed,
            offsets=self._offsets(),
        )

    def analyze_inputs(self) -> Subtree:
        self._check_gaps()
        self._changes = self._find_changes()
        return self._result()

    def _result(self, **outcome: Any) -> Subtree:
        finder = DependencyFinder(self._scope, self._changes, self._unread)
        dependencies = finder.find()
        scope = vars(self._scope)
        return Subtree(**scope, dependencies=dependencies, changes=self._changes, **outcome)

    def _find_changes(self) -> list[PathChange]:
        changes: list[PathChange] = []
        shared: list[PathChange] = []
        for key in self._members:
            for change in self._index.changes[key]:
                if not self._scope.contains(key, change.at):
                    continue
                if change.path.startswith(SHARED_MEMORY):
                    shared.append(change)
                elif not change.path.startswith(KERNEL_DIRECTORIES):
                    changes.append(change)
                elif not change.path.startswith((b"/proc/", *STATELESS_DEVICES)):
                    raise NotReusable(f"it writes to {display_path(change.path)}")
        self._check_shared_memory(shared)
        return sorted(changes, key=lambda change: (change.at, change.rank))

    def _check_shared_memory(self, changes: list[PathChange]) -> None:
        """Shared memory is fine if only the subtree used it and removed it again."""
        ordered = sorted(changes, key=lambda change: (change.at, change.rank))
        for path, change in {change.path: change for change in ordered}.items():
            if change.there:
                raise NotReusable(f"it leaves {display_path(path)} in shared memory")
            if self._scope.changed_by_others(path):
                raise NotReusable(f"it shares {display_path(path)} with others")

    def _check_ends(self) -> None:
        if self._record.itself.ended is None:
            raise NotReusable("the record of its execution is incomplete")
        signalled = {a for a, _, _, via in self._record.informed if via == "signal"}
        for key in self._members:
            process = self._record.activities[key]
            if self._index.successor(process) is not None:
                continue
            if process.ended is None:
                raise NotReusable("the end of one of its processes was not seen")
            if process.ended > self._scope.ended:
                raise NotReusable("one of its processes continued after its end")
            internal = process.signal == _SIGPIPE or key in signalled
            if process.signal is not None and (key == self._chain[-1].key or not internal):
                raise NotReusable("a signal ended it")

    def _check_connections(self) -> None:
        for learnt, source, _, via in self._record.informed:
            if (learnt in self._members) != (source in self._members):
                raise NotReusable(_CONNECTION_REASONS.get(via, "it exchanges data with others"))

    def _check_gaps(self) -> None:
        for gap in self._record.gaps:
            if gap.what in _HARMLESS_GAPS:
                continue
            if gap.activity in self._members or gap.what == "trace":
                raise NotReusable(f"it was not recorded completely ({gap.what})")
        self._unread = {gap.locator for gap in self._record.gaps if gap.what == "content"}

    def _check_descriptors(self) -> None:
        access: dict[str, int] = {}  # 1: read, 2: write, 3: both
        for _, mode, name, *_ in self._held:
            access[name] = access.get(name, 0) | mode
        for name, mode in access.items():
            if name.startswith("socket:"):
                raise NotReusable("it has a socket from its parent")
            if name.startswith("pipe:") and mode != 3:
                raise NotReusable("it reads a pipe" if mode == 1 else "it writes to a pipe")

    def _printed_ranges(self) -> dict[str, tuple[int, int]]:
        ranges: dict[str, tuple[int, int]] = {}
        for name in ("stdout", "stderr"):
            if not _holds_output(self._held, name):
                continue
            parts = []
            for process in self._chain:
                begun = process.facets.get("begun", {})
                if _holds_output(begun.get("held", ()), name):
                    parts.append(begun.get("output", {}).get(name))
            if not parts or None in parts:
                raise NotReusable("other processes printed at the same time")
            first, last = parts[0][0], parts[-1][1]
            if first < last:
                self._check_printed(name, last)
                ranges[name] = first, last
        return ranges

    def _check_printed(self, name: str, until: int) -> None:
        line = self._record.lines.get(stream_locator(self._record.execution.uid, name), ())
        known = next((v for v in line if v.digest and v.stored and v.size is not None), None)
        if known is None or (known.size or 0) < until:
            raise NotReusable("its output is not stored")
        if name in self._record.facets.get("masked", ()):
            raise NotReusable("a secret was masked in what it printed")

    def _offsets(self) -> dict[int, int]:
        offsets = self._chain[-1].facets.get("begun", {}).get("output", {}).get("places", {})
        for fd, _, name, *file_state in self._held:
            continued = file_state and file_state[1] & 2 and len(self._chain) > 1
            if continued or offsets.get(str(fd), 0) < 0:
                raise NotReusable(f"how far it read {name} is not known")
        return {int(fd): offset for fd, offset in offsets.items()}

    def _inherited_files(self) -> list[InheritedFile]:
        files = []
        for fd, mode, name, *file_state in self._held:
            if not file_state or not mode & 2:
                continue
            path = path_of(f"file://{name}") or b""
            replaced = any(c.path == path and c.rank != 1 for c in self._changes)
            if mode == 3 or replaced:
                raise NotReusable(f"it reads and writes {display_path(path)}, which it inherited")
            at, flags, size = file_state
            files.append(self._inherited_file(fd, path, at, size if flags & 1 else None))
        if len({file.path for file in files}) != len(files):
            raise NotReusable("it inherited the same file twice")
        return files

    def _inherited_file(self, fd: int, path: bytes, at: int, size: int | None) -> InheritedFile:
        """`size`: the size before, if the file is only appended to."""
        line = self._record.lines.get(self._locator(path), ())
        written = [v for v in line if self._members & self._index.makers.get(v.key, {}).keys()]
        if not written:
            raise NotReusable(f"what it wrote to {display_path(path)} is not known")
        version = written[-1]
        self._check_stored(version, path)
        if size is None and (at or self._extends_earlier(version)):
            raise NotReusable(f"it continues {display_path(path)}, which others began")
        return InheritedFile(fd, path, version, size or 0)

    def _extends_earlier(self, version: Version) -> bool:
        """Whether the version keeps bytes of an earlier version of the same path."""
        edges = (edge for key in self._members for edge in self._index.use_edges[key])
        earlier = (self._record.versions[edge.version] for edge in edges if edge.how == "append")
        return any(v.locator == version.locator and v.key != version.key for v in earlier)

    def _outputs(self, handed: set[bytes]) -> dict[bytes, Output]:
        outputs: dict[bytes, Output] = {}
        replaced: set[bytes] = set()
        for change in self._changes:
            if change.path in handed:
                continue
            if change.how in ("rename", "exchange", "symlink", "delete"):
                replaced.add(change.path)
            if not change.there:
                outputs[change.path] = Output("gone")
            elif change.version is None:
                outputs[change.path] = Output("directory", change.mode, mtime=change.mtime)
            else:
                version = self._record.versions[change.version]
                outputs[change.path] = Output("file", 0, version, change.path not in replaced)
        for path, output in outputs.items():
            if self._scope.changed_by_others(path):
                raise NotReusable(f"{display_path(path)} was changed by others while it ran")
            outputs[path] = self._check_output(path, output)
        return outputs

    def _check_output(self, path: bytes, output: Output) -> Output:
        """Return the output with its kind and mode."""
        if output.kind == "directory" and not stat.S_ISDIR(output.mode):
            raise NotReusable(f"{display_path(path)} is a pipe or a device")
        if output.version is None:
            return output
        mode = self._check_stored(output.version, path)
        makers = self._index.makers.get(output.version.key, {})
        if any(edge.how == "link" for edge in makers.values()):
            raise NotReusable(f"{display_path(path)} is a hard link")
        kind = "link" if stat.S_ISLNK(mode) else "file"
        return output._replace(kind=kind, mode=stat.S_IMODE(mode))

    def _check_stored(self, version: Version, path: bytes) -> int:
        """Return the mode of a version whose content is stored and that no other process wrote."""
        if not self._index.makers.get(version.key, {}).keys() <= self._members:
            raise NotReusable(f"others wrote to {display_path(path)} as well")
        known = (
            version.digest is not None and version.stored and version.locator not in self._unread
        )
        if not known or version.mode is None or version.mtime is None:
            raise NotReusable(f"what it wrote to {display_path(path)} is not stored")
        return version.mode

    def _locator(self, path: bytes) -> Locator:
        return file_locator(str(self._record.facets.get("machine", "")), path)


def _find_members(index: DependencyIndex, root: Activity) -> frozenset[int]:
    """The keys of the process and its descendants."""
    members = {root.key}
    waiting = [root.key]
    while waiting:
        children = [child.key for child in index.children[waiting.pop()]]
        members.update(children)
        waiting += children
    return frozenset(members)


def _holds_output(held: Iterable[list[Any]], name: str) -> bool:
    """Whether one of the descriptors writes to this stream."""
    return any(mode & 2 and stream == name for _, mode, stream, *_ in held)

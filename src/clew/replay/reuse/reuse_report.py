"""Describe what a reused subtree did, for the record of the execution that skipped it."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from clew.documents.ids import Locator, Uid
from clew.prov.locators import file_locator
from clew.prov.queries.execution_record import Activity, Edge, Version
from clew.prov.queries.formats import STREAM
from clew.replay.execution_index import load_seals
from clew.replay.reuse.start_match import ProgramStart, load_recorded_variables
from clew.replay.reuse.subtree import Subtree
from clew.witness.syscalls.reused_subtree import (
    ReusedAction,
    ReusedProcess,
    ReusedSubtree,
    ReusedVersion,
)
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.version_tracker import KnownVersion

_LOOKED, _USED, _REPLACED, _GONE = 1, 2, 2, 4
"""The order of what happened at one moment; versions are generated between the last two."""


class ReuseDescription:
    """`before`: the files it found, as they were; `opened`: inherited files, before it wrote them;
    `after`: its outputs, as they are now."""

    def __init__(
        self,
        subtree: Subtree,
        start: ProgramStart,
        machine: str,
        before: Mapping[bytes, FileStat],
        opened: Mapping[bytes, FileStat],
        after: Mapping[bytes, FileStat],
    ) -> None:
        self._subtree, self._start, self._machine = subtree, start, machine
        self._before, self._opened, self._after = before, opened, after
        self._index, self._record = subtree.index, subtree.record
        self._handed = {file.version.key for file in subtree.handed}
        self._appended = {file.version.key for file in subtree.handed if opened[file.path].size}
        """Their content depends on what the files contained before."""
        self._versions: dict[int, ReusedVersion] = {}

    def describe(self) -> ReusedSubtree:
        members = [self._record.activities[key] for key in self._subtree.members]
        members.sort(key=lambda process: process.number or 0)
        actions = sorted(self._actions(members))
        self._set_bases(members)
        return ReusedSubtree(
            processes=[self._process(process) for process in members],
            versions=self._versions,
            actions=actions,
            held=self._start.held,
            standing=self._start.standing,
            printed={name: until - since for name, (since, until) in self._subtree.printed.items()},
        )

    def _process(self, process: Activity) -> ReusedProcess:
        root = process.key == self._subtree.root.key
        parent = self._record.activities.get(process.parent or 0)
        return ReusedProcess(
            uid=process.uid,
            parent=None if root or parent is None else parent.uid,
            pid=process.pid or 0,
            started=self._subtree.started if root else process.started,
            ended=process.ended,
            exe=process.exe,
            cwd=process.cwd,
            command=tuple(process.command),
            variables=load_recorded_variables(self._record, process),
            start_facet=self._start_facet(process),
            status=process.status,
            signal=process.signal,
        )

    def _start_facet(self, process: Activity) -> dict[str, Any] | None:
        """With the keyed hashes of its own secret variables."""
        begun: dict[str, Any] | None = process.facets.get("begun")
        sealed = load_seals(self._record, process)
        return {**begun, "sealed": sealed} if begun is not None and sealed else begun

    def _actions(self, members: list[Activity]) -> Iterator[ReusedAction]:
        for process in members:
            for edge in self._index.use_edges[process.key]:
                if self._subtree.contains(process.key, edge.at) and edge.how != "append":
                    yield from self._edge(process, edge, "used", _USED)
            for look in self._index.looks[process.key]:
                if self._subtree.contains(process.key, look.at):
                    words = (look.kind, self._locator(look.locator), look.answer)
                    yield ReusedAction(look.at, _LOOKED, "looked", process.uid, None, words)
        yield from self._changes(members)
        inside = self._subtree.members
        for learnt, source, at, via in self._record.informed:
            if learnt in inside and source in inside:
                who, by = (self._record.activities[key].uid for key in (learnt, source))
                yield ReusedAction(
                    max(at, self._subtree.ended), _GONE, "informed", who, None, (by, via)
                )

    def _changes(self, members: list[Activity]) -> Iterator[ReusedAction]:
        by_key = {process.key: process for process in members}
        for edge in self._record.generated:
            process = by_key.get(edge.activity)
            if process is None:
                continue
            locator = self._record.versions[edge.version].locator
            if locator.startswith(STREAM):
                words = (locator.rpartition("/")[2], "2")
                at = max(edge.at, self._subtree.started)
                yield ReusedAction(at, _USED, "stream", process.uid, None, words)
            elif self._subtree.contains(process.key, edge.at) or edge.version in self._handed:
                self._add_version(edge.version)
        for edge in self._record.invalidated:
            process = by_key.get(edge.activity)
            if process is not None and self._subtree.contains(process.key, edge.at):
                order = _REPLACED if edge.how == "replace" else _GONE
                yield from self._edge(process, edge, "gone", order)

    def _edge(
        self, process: Activity, edge: Edge, kind: Literal["used", "gone"], order: int
    ) -> Iterator[ReusedAction]:
        version = self._record.versions[edge.version]
        if version.locator.startswith(STREAM):
            words = (version.locator.rpartition("/")[2], "1")
            yield ReusedAction(edge.at, order, "stream", process.uid, None, words)
        elif self._index.paths[edge.version] is not None:
            self._add_version(edge.version)
            yield ReusedAction(edge.at, order, kind, process.uid, edge.version, (edge.how,))

    def _add_version(self, key: int) -> None:
        if key in self._versions:
            return
        version = self._record.versions[key]
        path = self._index.paths[key] or b""
        makers = self._makers(key)
        if not makers:
            self._versions[key] = ReusedVersion(path, self._before.get(path))
            return
        left = self._subtree.outputs.get(path)
        last = left is not None and left.version is not None and left.version.key == key
        handed = key in self._handed
        # A process that opened a file for a child to write is not its maker: the child began later.
        born = min(self._record.activities[by].started for by in self._index.makers[key])
        made = max(min(edge.at for edge in self._index.makers[key].values()), born)
        self._versions[key] = ReusedVersion(
            path=path,
            file_stat=self._after.get(path) if last or handed else None,
            known=None if key in self._appended else _content(version),
            generated_at=max(made, self._subtree.started),
            makers=makers,
            opened=self._opened.get(path) if handed else None,
        )

    def _makers(self, key: int) -> dict[Uid, str]:
        makers = {}
        for by, edge in self._index.makers.get(key, {}).items():
            process = self._record.activities[by]
            mine = by in self._subtree.members
            if mine and (self._subtree.contains(by, edge.at) or key in self._handed):
                makers[process.uid] = edge.how
        return makers

    def _set_bases(self, members: list[Activity]) -> None:
        """Find the version that another was appended to: one process used it and made the
        other at the same time."""
        written = {(edge.activity, edge.version, edge.at) for edge in self._record.generated}
        for process in members:
            for edge in self._index.use_edges[process.key]:
                if edge.how != "append":
                    continue
                old = self._record.versions[edge.version]
                for key, reused in list(self._versions.items()):
                    version = self._record.versions[key]
                    same = version.locator == old.locator and key != old.key
                    if reused.makers and same and (process.key, key, edge.at) in written:
                        self._add_version(old.key)
                        self._versions[key] = reused._replace(base=old.key)

    def _locator(self, locator: Locator) -> Locator:
        """The same path on the machine whose files these are now."""
        _, _, rest = locator.partition("://")
        slash = rest.find("/")
        if not locator.startswith("file://") or slash < 0:
            return locator
        return Locator(f"{file_locator(self._machine, b'')}{rest[slash:]}")


def _content(version: Version) -> KnownVersion | None:
    if version.digest is None:
        return None
    return KnownVersion(
        digest=version.digest,
        size=version.size or 0,
        mode=version.mode or 0,
        mtime=version.mtime or 0,
        kept=version.stored,
    )

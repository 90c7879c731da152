"""Find what a subtree depended on: the facts that must hold again before it can be reused."""

import os
import stat
from collections.abc import Iterator

from clew.documents.ids import Locator
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import Edge
from clew.prov.queries.formats import STREAM
from clew.replay.reuse.dependency_index import CHANGE_KINDS, PathChange, path_and_parents
from clew.replay.reuse.subtree import Dependency, NotReusable, SubtreeScope, display_path
from clew.safe_path import KERNEL_DIRECTORIES

SHARED_MEMORY = b"/dev/shm/"
STATELESS_DEVICES = (
    *(b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/tty", b"/dev/random", b"/dev/urandom"),
    *(b"/dev/fd", b"/dev/stdin", b"/dev/stdout", b"/dev/stderr", b"/dev/pts/", b"/dev/ptmx"),
    *(b"/dev/nvidia", b"/dev/dri/", b"/dev/kfd"),
)
"""Devices that keep nothing from one use to the next."""


class DependencyFinder:
    """`unread`: locators whose bytes could not be recorded."""

    def __init__(
        self, scope: SubtreeScope, changes: list[PathChange], unread: set[Locator | None]
    ) -> None:
        self._scope = scope
        self._index = scope.index
        self._record = scope.record
        self._changes = changes
        self._unread = unread
        self._first_change = {change.path: change.at for change in reversed(changes)}

    def find(self) -> list[Dependency]:
        """The dependencies in order, except those on what the subtree had itself changed by then.
        Raises NotReusable."""
        dependencies = [*self._uses(), *self._looks(), *self._removals()]
        timed = {dependency.path for dependency in dependencies if dependency.kind == "times"}
        dependencies = drop_traversals(
            [
                dependency
                for dependency in dependencies
                # An error caused by an existing file says less than the file's recorded state.
                if not (
                    dependency.path in timed
                    and dependency.kind == "absent"
                    and dependency.answer != "ENOENT"
                )
            ]
        )
        dependencies.sort(key=lambda dependency: dependency.at)
        for dependency in dependencies:
            self._check_undisturbed(dependency)
        return [
            dependency
            for dependency in dependencies
            if not self._changed_before(dependency.path, dependency.at)
        ]

    def _changed_before(self, path: bytes, at: int) -> bool:
        parents = path_and_parents(path)
        if self._first_change.keys().isdisjoint(parents):  # by far the most
            return False
        return any(self._first_change.get(parent, at) < at for parent in parents)

    def _uses(self) -> Iterator[Dependency]:
        for key in self._scope.members:
            for edge in self._index.use_edges[key]:
                if self._scope.contains(key, edge.at):
                    dependency = self._use(edge)
                    if dependency is not None:
                        yield dependency

    def _looks(self) -> Iterator[Dependency]:
        for key in self._scope.members:
            for look in self._index.looks[key]:
                path = path_of(look.locator)
                if path is None or look.kind in CHANGE_KINDS or path.startswith(KERNEL_DIRECTORIES):
                    continue
                if not self._scope.contains(key, look.at):
                    continue
                unknown = look.kind == "listing" and not look.answer
                if unknown and not self._changed_before(path, look.at):
                    raise NotReusable(f"the list of files in {display_path(path)} is not stored")
                yield Dependency(look.at, look.kind, path, look.answer, None)

    def _removals(self) -> Iterator[Dependency]:
        """A removed path must exist again; a removed directory must be empty."""
        for change in self._changes:
            if change.how == "removed":
                yield Dependency(change.at, "empty", change.path, "", None)
            elif change.how == "delete":
                yield Dependency(change.at, "present", change.path, "", None)

    def _check_undisturbed(self, dependency: Dependency) -> None:
        """Check that no process outside the subtree changed the path before the subtree looked at
        it."""
        path, at, scope = dependency.path, dependency.at, self._scope
        if scope.changed_by_others(path, at) or (
            dependency.kind in ("listing", "times")
            and self._index.entries_changed_by_others(path, scope.started, at, scope.members)
        ):
            raise NotReusable(f"{display_path(path)} was changed by others while it ran")

    def _use(self, edge: Edge) -> Dependency | None:
        version = self._record.versions[edge.version]
        path = self._index.paths[edge.version]
        if path is None:
            if version.locator.startswith(STREAM):
                return None  # the inherited descriptors are checked instead
            raise NotReusable("it uses the network")
        makers = self._index.makers.get(edge.version, {})
        inside = [maker for maker in makers if maker in self._scope.members]
        if path.startswith(KERNEL_DIRECTORIES):
            made_here = path.startswith(SHARED_MEMORY) and inside
            stateless = path.startswith(STATELESS_DEVICES)
            if path.startswith(b"/dev/") and not stateless and not made_here:
                raise NotReusable(f"it uses {display_path(path)}")
            return None
        if any(self._scope.contains(maker, makers[maker].at) for maker in inside):
            return None  # the subtree wrote it
        known = self._index.with_content(version)
        if version.locator in self._unread or known.digest is None:
            raise NotReusable(f"the content of {display_path(path)} is not stored")
        self._check_complete(makers, path)
        return Dependency(edge.at, "bytes", path, "", known)

    def _check_complete(self, makers: dict[int, Edge], path: bytes) -> None:
        """Check that no process outside the subtree was still writing the file while it ran."""
        related = self._scope.members | self._index.with_ancestors(self._scope.root)
        for maker, edge in makers.items():
            ended = self._record.activities[maker].ended
            wrote_on = maker not in related and (ended is None or ended > self._scope.started)
            if edge.at > self._scope.started or wrote_on:
                raise NotReusable(f"{display_path(path)} was written while it ran")


def drop_traversals(dependencies: list[Dependency]) -> list[Dependency]:
    """Reduce the times of traversed directories to their existence.

    Resolving a path examines every directory on the way, only to see whether it is a link, so the
    times of these directories do not matter.
    """
    directories = {dependency.path for dependency in dependencies if _is_directory(dependency)}
    links = {dependency.path for dependency in dependencies if dependency.kind == "link"}
    within = {os.path.dirname(dependency.path) for dependency in dependencies}

    def reduce(dependency: Dependency) -> Iterator[Dependency]:
        path = dependency.path
        if not _is_directory(dependency) or path not in within:
            yield dependency
            return
        if not directories.issuperset(path_and_parents(path)[1:-1]):
            yield dependency
            return
        yield dependency._replace(kind="present", answer=dependency.answer.split(" ")[0])
        if path not in links:
            yield dependency._replace(kind="present", answer="plain")

    return [reduced for dependency in dependencies for reduced in reduce(dependency)]


def _is_directory(dependency: Dependency) -> bool:
    return dependency.kind == "times" and stat.S_ISDIR(int(dependency.answer.split(" ")[0], 8))

"""Check on this machine whether a recorded task would have the same result now.

A forked task also depends on what its worker process depended on. Many tasks share that, so it is
checked in full once, and afterwards only for changes.
"""

import dataclasses
import os
import stat
import time
from collections.abc import Mapping

from clew.confined_files import HOST
from clew.documents.ids import Digest, ExecutionId, Uid
from clew.errors import ClewError
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import load_record
from clew.replay.reuse.dependency_index import DependencyIndex
from clew.replay.reuse.input_check import InputCheck
from clew.replay.reuse.previous_executions import PreviousExecution
from clew.replay.reuse.reuse_types import IsGiven, ReuseCheck, TaskVariables
from clew.replay.reuse.start_match import find_variable_difference
from clew.replay.reuse.subtree import NotReusable, Subtree
from clew.replay.reuse.subtree_analysis import analyze_inputs
from clew.replay.sandbox.sandbox_reader import SandboxFiles
from clew.run.launch.input_snapshot import InputSnapshot
from clew.store import Signature, Store

_CACHE_SECONDS = 0.2
"""Seconds for which the state of a file is trusted without another look."""


class HostFiles(SandboxFiles):
    """The files of this machine. The store knows the digests of files in a known state."""

    def __init__(self, store: Store) -> None:
        super().__init__(HOST, {})
        self._store = store

    def digest(self, path: bytes, status: os.stat_result) -> str | None:
        if stat.S_ISREG(status.st_mode):
            [known] = self._store.known_digests([Signature.of(status)])
            if known is not None:
                return known
        return super().digest(path, status)


class ReuseChecker:
    """Checks tasks for the duration of one pipeline run."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._files = HostFiles(store)
        self._inherited: dict[str, tuple[ReuseCheck, InputSnapshot]] = {}
        self._sure: set[str] = set()
        self._looked = 0.0

    def digest(self, path: bytes) -> str | None:
        """The digest of a file; None if it is not a file."""
        try:
            return self._files.digest(path, os.stat(path))
        except OSError:
            return None

    def changed(self) -> None:
        """Forget the cached state: a task ran."""
        self._looked = 0.0

    def _look_again(self) -> None:
        if time.monotonic() - self._looked > _CACHE_SECONDS:
            self._looked = time.monotonic()
            self._files.forget()
            self._sure.clear()

    def holds(self, uid: Uid, now: TaskVariables, given: IsGiven) -> ReuseCheck:
        """Check whether the execution `uid` would have the same result now."""
        self._look_again()
        try:
            execution = PreviousExecution(load_record(self._graph, uid, inherit=False), self._names)
            subtree = execution.subtree(execution.record.processes[0])
        except NotReusable as why:
            return ReuseCheck(str(why))
        except (ClewError, IndexError):
            return ReuseCheck("its record is gone")
        dependencies = [one for one in subtree.dependencies if not given(one.path)]
        asked = dataclasses.replace(subtree, dependencies=dependencies)
        why_not = (
            find_variable_difference(execution.record.itself.environment, now.variables)
            or _seal_difference(execution.record.facets.get("sealed", {}), now.seals)
            or InputCheck(asked, self._files, self._names, None).find_difference()
            or self._output_difference(subtree)
        )
        mine = ReuseCheck(why_not, len(asked.dependencies) + len(subtree.outputs))
        worker = execution.record.facets.get("inherits")
        if why_not is not None or worker is None:
            return mine
        inherited = self._check_worker(Uid(worker))
        return ReuseCheck(inherited.why_not, mine.checked + inherited.checked)

    def list_dependencies(self, execution: ExecutionId) -> list[dict[str, str]]:
        """List everything an execution and its worker depended on; empty if some of it cannot be
        checked."""
        record = load_record(self._graph, execution)
        try:
            subtree = analyze_inputs(DependencyIndex(record), record.processes[0])
        except NotReusable:
            return []
        return [
            {
                "kind": one.kind,
                "path": one.path.decode(errors="replace"),
                "answer": (one.version.digest or "") if one.version else one.answer,
            }
            for one in subtree.dependencies
        ]

    def _check_worker(self, uid: Uid) -> ReuseCheck:
        """A failed check stays failed; a passed one holds until a file changes."""
        known = self._inherited.get(uid)
        held = known is not None and known[0].why_not is None
        if known is None or (held and uid not in self._sure and known[1].changed()):
            known = self._inherited[uid] = self._examine_worker(uid)
        self._sure.add(uid)
        return known[0]

    def _examine_worker(self, uid: Uid) -> tuple[ReuseCheck, InputSnapshot]:
        try:
            record = load_record(self._graph, uid, inherit=False)
            subtree = analyze_inputs(DependencyIndex(record), record.processes[0])
        except NotReusable as why:
            return ReuseCheck(str(why)), InputSnapshot()
        except (ClewError, IndexError):
            return ReuseCheck("the record of its worker is gone"), InputSnapshot()
        snapshot = InputSnapshot.of_paths({one.path for one in subtree.dependencies})
        why_not = InputCheck(subtree, self._files, self._names, None).find_difference()
        return ReuseCheck(why_not, len(subtree.dependencies)), snapshot

    def _output_difference(self, subtree: Subtree) -> str | None:
        """Check that its outputs are still there, unchanged."""
        for path, left in subtree.outputs.items():
            name = path.decode(errors="replace")
            try:
                status = self._files.lstat(path)
            except OSError:
                if left.kind != "gone":
                    return f"{name}, which it made, is gone"
                continue
            if left.kind == "gone":
                return f"{name}, which it removed, is there again"
            if left.kind == "file" and left.version is not None:
                same = status.st_size == left.version.size
                if not same or self._files.digest(path, status) != left.version.digest:
                    return f"{name}, which it made, changed"
        return None

    def _names(self, digest: Digest) -> list[bytes]:
        return self._store.read_whole(digest).split(b"\0")


def _seal_difference(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    names = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    return f"its variable {names[0]} changed" if names else None

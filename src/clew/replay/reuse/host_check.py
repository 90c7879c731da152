"""Whether a piece of work that was recorded here would come out as it did: asked of the files of
this machine as they are now, before it is done again.

What it inherits of the command that forked it is asked as well; that is the same for many, so it
is looked at closely once, and after that only for whether anything was touched.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import time
from collections.abc import Mapping

from clew.confined_files import HOST
from clew.errors import ClewError
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import recorded
from clew.replay.reuse.input_check import Check
from clew.replay.reuse.previous_runs import Past
from clew.replay.reuse.reuse_types import Answer, Given, Surroundings
from clew.replay.reuse.start_match import differing
from clew.replay.reuse.subtree import NotAlone, Unit
from clew.replay.reuse.subtree_analysis import reading
from clew.replay.sandbox.sandbox_files import Seen
from clew.run.launch.input_snapshot import InputSnapshot
from clew.store import Signature, Store

_FRESH = 0.2
"""Seconds for which what was just looked at need not be looked at again."""


class _Here(Seen):
    """The files of this machine. The store remembers what files in this very state held."""

    def __init__(self, store: Store) -> None:
        super().__init__(HOST, {})
        self._store = store

    def digest(self, path: bytes, status: os.stat_result) -> str | None:
        if stat.S_ISREG(status.st_mode):
            [known] = self._store.recall([Signature.of(status)])
            if known is not None:
                return known.digest
        return super().digest(path, status)


class Reuse:
    """Asks, for as long as one run goes on."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store
        self._world = _Here(store)
        self._inherited: dict[str, tuple[Answer, InputSnapshot]] = {}
        self._sure: set[str] = set()
        self._looked = 0.0

    def digest(self, path: bytes) -> str | None:
        """What a file holds; None where it is none."""
        try:
            return self._world.digest(path, os.stat(path))
        except OSError:
            return None

    def changed(self) -> None:
        """Something ran: what was looked at must be looked at again."""
        self._looked = 0.0

    def _look_again(self) -> None:
        if time.monotonic() - self._looked > _FRESH:
            self._looked = time.monotonic()
            self._world.forget()
            self._sure.clear()

    def holds(self, uid: str, now: Surroundings, given: Given) -> Answer:
        """Whether the execution `uid` would come out the same now."""
        self._look_again()
        try:
            past = Past(recorded(self._graph, uid, alone=True), self._names)
            unit = past.unit(past.record.processes[0])
        except NotAlone as why:
            return Answer(str(why))
        except (ClewError, IndexError):
            return Answer("its record is gone")
        asked = dataclasses.replace(
            unit, needs=[need for need in unit.needs if not given(need.path)]
        )
        why_not = (
            differing(past.record.itself.environment, now.variables)
            or _resealed(past.record.facets.get("sealed", {}), now.seals)
            or Check(asked, self._world, self._names, None).unmet()
            or self._left(unit)
        )
        mine = Answer(why_not, len(asked.needs) + len(unit.leaves))
        worker = past.record.facets.get("inherits")
        if why_not is not None or worker is None:
            return mine
        inherited = self._of_worker(str(worker))
        return Answer(inherited.why_not, mine.facts + inherited.facts)

    def facts(self, uid: str) -> list[dict[str, str]]:
        """All that an execution relied on, that of the command which forked it included; none
        where it relied on what cannot be asked again."""
        record = recorded(self._graph, uid)
        try:
            unit = reading(Past(record, self._names).ledger, record.processes[0])
        except NotAlone:
            return []
        return [
            {
                "kind": need.kind,
                "path": need.path.decode(errors="replace"),
                "answer": (need.version.digest or "") if need.version else need.answer,
            }
            for need in unit.needs
        ]

    def _of_worker(self, uid: str) -> Answer:
        """What did not hold once does not hold; what did, does while nothing was touched."""
        known = self._inherited.get(uid)
        held = known is not None and known[0].why_not is None
        if known is None or (held and uid not in self._sure and known[1].changed()):
            known = self._inherited[uid] = self._examined(uid)
        self._sure.add(uid)
        return known[0]

    def _examined(self, uid: str) -> tuple[Answer, InputSnapshot]:
        try:
            past = Past(recorded(self._graph, uid, alone=True), self._names)
            unit = reading(past.ledger, past.record.processes[0])
        except NotAlone as why:
            return Answer(str(why)), InputSnapshot()
        except (ClewError, IndexError):
            return Answer("the record of its worker is gone"), InputSnapshot()
        standing = InputSnapshot.of_paths({need.path for need in unit.needs})
        why_not = Check(unit, self._world, self._names, None).unmet()
        return Answer(why_not, len(unit.needs)), standing

    def _left(self, unit: Unit) -> str | None:
        """Whether what it left is there, as it left it."""
        for path, left in unit.leaves.items():
            name = path.decode(errors="replace")
            try:
                found = self._world.lstat(path)
            except OSError:
                if left.kind != "gone":
                    return f"{name}, which it made, is gone"
                continue
            if left.kind == "gone":
                return f"{name}, which it removed, is there again"
            if left.kind == "file" and left.version is not None:
                same = found.st_size == left.version.size
                if not same or self._world.digest(path, found) != left.version.digest:
                    return f"{name}, which it made, changed"
        return None

    def _names(self, digest: str) -> list[bytes]:
        return b"".join(self._store.read(digest)).split(b"\0")


def _resealed(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    names = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    return f"its variable {names[0]} changed" if names else None

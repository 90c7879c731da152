"""The graph of one project: begin, fold and remove executions.

The graph assigns only local numbers and names; everything else is folded from events and would be
the same in any database.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from clew.db import Connection
from clew.documents.ids import Digest, Uid
from clew.errors import UsageError
from clew.prov import tables
from clew.prov.row_keys import activity_key, project_key

if TYPE_CHECKING:
    from clew.prov.events import AnyEvent, Started
    from clew.prov.fold import Row, Rows

FOLD_BATCH = 100_000
"""Events folded in one transaction: large enough to be fast, small enough to let others write."""

LATEST = "latest"
"""Stands for the id of the newest execution or run. So it cannot be a name."""
_ID_PATTERN = re.compile(rf"([er]\d+(\.p\d+)?|[0-9a-f]{{32}}|{LATEST}(\.p\d+)?)$")
_RESERVED_CHARACTERS = frozenset(":@/\0\n")


class Member(Protocol):
    """A file in an archive."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...


ListMembers = Callable[[Digest], Mapping[bytes, Member]]
"""The files in the archive with this digest, by their own digests."""


MayRead = Callable[[str], bool]
"""Whether a caller may read a namespace of the cluster."""


class Graph:
    """The record of one project in one database."""

    def __init__(
        self,
        connection: Connection,
        project_uid: Uid,
        *,
        signers: Path | None = None,
        list_members: ListMembers = lambda _: {},
        foreign: bool = False,
        may_read: MayRead | None = None,
    ) -> None:
        """`signers`: the directory that tells whose keys are known (`clew.signing`).
        `list_members` lists the files in a stored archive. `foreign`: this user did not make the
        project, so all its executions count as made elsewhere. `may_read`: whether the caller may
        read a namespace of the cluster; None: all of them."""
        self.restrict(may_read)
        self.connection = connection
        self.foreign = foreign
        self.list_members = list_members
        self._signers = signers
        self.project_uid = project_uid
        self.project = project_key(project_uid)

    def restrict(self, may_read: MayRead | None) -> None:
        """From now on, answer another caller."""
        self._may_read = may_read

    @property
    def is_restricted(self) -> bool:
        """Whether there may be namespaces that the caller may not read."""
        return self._may_read is not None

    def may_read(self, namespace: str) -> bool:
        """Whether the caller may read a namespace of the cluster."""
        return self._may_read is None or self._may_read(namespace)

    def begin(self, uid: Uid, *, name: str | None = None, parent: Uid | None = None) -> int:
        """Give the execution `uid` its local number: the 2 of e2. A second call returns the same
        number.

        `parent` is the execution it repeats. A repeat of a record made elsewhere counts as made
        elsewhere too: it is the same command, asking for the same secrets.
        """
        if name is not None:
            check_name(name)

        def begin() -> int:
            foreign = bool(parent is not None and self.made_elsewhere(parent))
            return self._begin(uid, name, elsewhere=tables.REPEAT_OF_IMPORTED if foreign else 0)

        return self.connection.atomically(begin)

    def begin_run(self, uid: Uid) -> int:
        """Give the pipeline run `uid` its local number: the 2 of r2. Asked again, the same one."""
        return self.connection.atomically(lambda: self._begin_run(uid))

    def fold(self, events: Iterable[AnyEvent]) -> None:
        """Add the rows of `events`. Executions that were not begun here get the next numbers."""
        from clew.prov.fold import Rows  # msgspec is slow to load, and most questions never fold

        remaining = iter(events)
        while batch := list(islice(remaining, FOLD_BATCH)):
            rows = Rows(self.project_uid)
            rows.add(batch)
            self._write(rows)

    def import_events(
        self, *records: Iterable[AnyEvent], also: Callable[[], object] = lambda: None
    ) -> None:
        """Add what another party recorded, and call `also`, in one transaction.

        Each record may describe its own executions only, and changes nothing that is known;
        otherwise all is rejected. Executions that are new here are marked as made elsewhere.
        """
        from clew.prov.event_validation import check_events
        from clew.prov.fold import Rows

        parts: list[tuple[Uid, list[AnyEvent], Rows]] = []
        for record in records:
            by_execution: dict[Uid, list[AnyEvent]] = {}
            for event in record:
                by_execution.setdefault(event.execution, []).append(event)
            for uid, events in by_execution.items():
                check_events(uid, events)
                rows = Rows(self.project_uid)
                rows.add(events)
                parts.append((uid, events, rows))

        def add() -> None:
            self._lock()
            for part in parts:
                self._import(*part)
            also()

        if parts:
            self.connection.atomically(add)

    def import_observations(self, events: Iterable[AnyEvent]) -> None:
        """Add what an agent of a cluster observed, in one transaction; all or nothing.

        Several agents describe one Pod, at any time and in any order: see
        `prov.cluster.observations`.
        """
        from clew.prov.cluster.observation_validation import check_known, check_observations
        from clew.prov.event_validation import check_events
        from clew.prov.fold import Rows

        by_execution: dict[Uid, list[AnyEvent]] = {}
        for event in events:
            by_execution.setdefault(event.execution, []).append(event)
        rows = Rows(self.project_uid)
        begun: dict[Uid, list[Started]] = {}
        for uid, own in by_execution.items():
            check_events(uid, own)
            begun[uid] = check_observations(uid, own)
            rows.add(own)
        prepared = rows.tables()

        def add() -> None:
            check_known(self, begun)
            self._begin_all(begun)
            self._insert(prepared, tables.INSERTS)

        if begun:
            self.connection.atomically(add)
            # On its own: it locks the project, for which another agent's transaction may wait.
            self.connection.rows(tables.COUNT_OBSERVATION, (self.project,))

    def _import(self, uid: Uid, events: list[AnyEvent], rows: Rows) -> None:
        from clew.prov.import_scope import check_scope, find_new_rows

        check_scope(self, uid, events)
        found = find_new_rows(self, uid, rows)
        self._begin(uid, None, elsewhere=tables.IMPORTED)
        self._give_names(rows)
        self._insert(found, tables.IMPORTS)

    @cached_property
    def signers(self) -> dict[str, str]:
        """The names of known signers by the fingerprints of their keys."""
        from clew.signing import allowed

        return {} if self._signers is None else allowed(self._signers)

    def remove(self, uid: Uid) -> None:
        """Remove the execution and its name. Its number is never used again."""
        key = activity_key(self.project_uid, uid)

        self.connection.atomically(lambda: self._remove(key))

    def withdraw(self, uid: Uid) -> None:
        """Forget an execution whose command never started. The next execution gets its number,
        unless a later number was given out already."""
        key = activity_key(self.project_uid, uid)

        def withdraw() -> None:
            self._lock()
            self.connection.rows(tables.RETURN_NUMBER, (self.project, key))
            self._remove(key)

        self.connection.atomically(withdraw)

    def _remove(self, key: int) -> None:
        for statement in tables.REMOVE:
            self.connection.rows(statement, (key,))

    def _write(self, rows: Rows) -> None:
        prepared = rows.tables()

        def write() -> None:
            self._forget_forgeries(rows, [row[0] for row in prepared["started"]])
            for uid in rows.executions:
                if uid in rows.runs:
                    self._begin_run(uid)
                else:
                    self._begin(uid, None)
            self._give_names(rows)
            self._insert(prepared, tables.INSERTS)

        if rows.executions:
            self.connection.atomically(write)

    def _forget_forgeries(self, rows: Rows, activities: list[int]) -> None:
        """Forget imported executions that claim activities which were just recorded here.

        The uid of a process can be guessed before it starts, and an imported record may have it.
        """
        own = {activity_key(self.project_uid, uid) for uid in rows.executions}
        claims = {key for (key,) in self.connection.rows_in(tables.CLAIMS, activities)}
        for key in claims - own:
            self._remove(key)

    def _give_names(self, rows: Rows) -> None:
        for uid, name in sorted(rows.names.items()):
            if _is_valid_name(name):
                key = activity_key(self.project_uid, uid)
                self.connection.rows(tables.GIVE_NAME, (name, key, self.project, name))

    def _insert(self, rows: dict[str, list[Row]], statements: Mapping[str, str]) -> None:
        for table, found in rows.items():
            if found:
                self.connection.insert(statements[table], found)

    def _lock(self) -> None:
        """Keep other writers from assigning numbers or importing until this transaction ends."""
        self.connection.rows(tables.BEGIN_PROJECT, (self.project, self.project_uid))
        self.connection.rows(tables.LOCK_PROJECT, (self.project,))

    def made_elsewhere(self, uid: Uid) -> int | None:
        """0 if the execution was recorded here, else as `tables.IMPORTED` says; None: unknown."""
        found = self.connection.row(tables.MADE_ELSEWHERE, (activity_key(self.project_uid, uid),))
        return None if found is None else int(found[0])

    def _find_number(self, key: int) -> int | None:
        """The number of an execution or run that has one. If it has none yet, the project is
        locked: then the caller gives it one."""
        found = self.connection.row(tables.FIND_NUMBER, (key, key))
        if found is None:
            self._lock()
            found = self.connection.row(tables.FIND_NUMBER, (key, key))
        return None if found is None else int(found[0])

    def _begin_all(self, uids: Iterable[Uid]) -> None:
        """As `_begin` for each of them, in few statements. They are of a cluster."""
        new = {activity_key(self.project_uid, uid): uid for uid in uids}
        self._drop_known(new)
        if not new:
            return
        self._lock()
        self._drop_known(new)
        count, now = len(new), time.time_ns()
        last = int(self.connection.rows(tables.NEXT_NUMBERS, (count, self.project))[0][0])
        rows = [
            (key, self.project, uid, last - count + number, None, now, 0, 1)
            for number, (key, uid) in enumerate(new.items(), 1)
        ]
        self.connection.insert(tables.BEGIN_EXECUTION, rows)

    def _drop_known(self, new: dict[int, Uid]) -> None:
        for (key,) in self.connection.rows_in(tables.FIND_EXECUTIONS, list(new)):
            del new[key]

    def _begin_run(self, uid: Uid) -> int:
        key = activity_key(self.project_uid, uid)
        if (known := self._find_number(key)) is not None:
            return known
        number = int(self.connection.rows(tables.NEXT_RUN_NUMBER, (self.project,))[0][0])
        self.connection.rows(tables.BEGIN_RUN, (key, self.project, uid, number, time.time_ns()))
        return number

    def _begin(self, uid: Uid, name: str | None, *, elsewhere: int = 0) -> int:
        connection = self.connection
        key = activity_key(self.project_uid, uid)
        if (known := self._find_number(key)) is not None:
            return known
        number = int(connection.rows(tables.NEXT_NUMBER, (self.project,))[0][0])
        if name is not None and (taken := connection.row(tables.FIND_NAME, (self.project, name))):
            raise UsageError(
                f"the name {name!r} belongs to e{taken[0]} already",
                hint=f"choose another name, or clew rm e{taken[0]}",
            )
        connection.rows(
            tables.BEGIN_EXECUTION,
            (key, self.project, uid, number, name, time.time_ns(), elsewhere, 0),
        )
        return number


def check_name(name: str) -> None:
    """Names can be used like ids, so they must not look like one."""
    if not _is_valid_name(name):
        raise UsageError(
            f"{name!r} cannot be a name: it is empty, reads as an id, or holds one of : @ /",
            hint="use letters, digits, dots and dashes",
        )


def _is_valid_name(name: str) -> bool:
    return (
        bool(name.strip()) and not _RESERVED_CHARACTERS & set(name) and not _ID_PATTERN.match(name)
    )

"""Convert the rows of an execution back to events, to move it to another project.

Row ids contain the project's uid, events do not. Folded into an empty graph of the same project,
the events give the same rows. A time that the rows do not have (when the bytes of a version became
known) is replaced by the nearest one. Rows about an activity that was removed, such as a parent,
are left out.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from clew.documents.ids import Digest, Locator, Uid
from clew.prov import tables
from clew.prov.events import (
    Alias,
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Looked,
    Started,
    Used,
    Version,
    to_batch,
)
from clew.prov.fold import NEVER
from clew.prov.graph import Graph
from clew.prov.queries.executions import ExecutionRef
from clew.prov.row_keys import digest_text, unpack_looks

_ACTIVITIES = "SELECT uid, id FROM started WHERE execution = ?"
_UIDS = (
    "SELECT id, uid FROM started WHERE id IN ({})",
    "SELECT id, uid FROM execution WHERE id IN ({})",
)
_VERSIONS = """
SELECT v.id, l.locator, v.maker, v.ordinal, v.at FROM version v JOIN location l ON l.id = v.location
WHERE v.id IN ({})
"""
_OWN_VERSIONS = "SELECT id FROM version WHERE execution = ?"
_LOCATIONS = "SELECT id, locator FROM location WHERE id IN ({})"

Row = tuple[Any, ...]


def export_events(graph: Graph, found: ExecutionRef) -> list[AnyEvent]:
    """The events of the execution, in the order of their numbers."""
    events = _RowConverter(graph, found).events()
    return sorted(events, key=lambda event: (event.n, to_batch([event])))


def list_stored_digests(events: Iterable[AnyEvent]) -> set[str]:
    """The contents that are stored according to these events."""
    found: set[str] = set()
    for event in events:
        if isinstance(event, Content) and event.stored:
            found.add(event.digest)
        elif isinstance(event, Looked) and event.kind == "listing" and event.answer:
            found.add(event.answer)
    return found


class _RowConverter:
    """Reads the rows of an execution and resolves their ids."""

    def __init__(self, graph: Graph, found: ExecutionRef) -> None:
        self._connection = graph.connection
        self._execution = found.uid
        self._uids: dict[int, Uid] = {found.key: found.uid}
        own = graph.connection.rows(_ACTIVITIES, (found.key,))
        self._uids.update((key, uid) for uid, key in own)
        activities = list(self._uids)
        self._rows = {
            table: self._select(table, "activity", activities)
            for table in (
                "ended", "used", "generated", "invalidated", "looked", "informed", "gap",
            )
        }  # fmt: skip
        self._rows["started"] = self._select("started", "id", activities)
        self._rows["alias"] = self._select("alias", "execution", [found.key])
        accessed = {key for (key,) in graph.connection.rows(_OWN_VERSIONS, (found.key,))}
        for table in ("used", "generated", "invalidated"):
            accessed.update(row[2] for row in self._rows[table])
        self._rows["content"] = self._select("content", "version", accessed)
        self._name(accessed)

    def _select(self, table: str, column: str, keys: Iterable[int]) -> list[Row]:
        columns = ", ".join(tables.COLUMNS[table])
        return self._connection.rows_in(
            f"SELECT {columns} FROM {table} WHERE {column} IN ({{}})",  # noqa: S608
            keys,
        )

    def _name(self, accessed: set[int]) -> None:
        """Load the names of all that the rows refer to by id."""
        versions = self._connection.rows_in(_VERSIONS, accessed)
        wanted = {row[2] for row in versions}
        wanted.update(row[6] for row in self._rows["started"] if row[6] is not None)
        wanted.update(row[2] for row in self._rows["informed"])
        for question in _UIDS:
            self._uids.update(self._connection.rows_in(question, wanted - self._uids.keys()))
        self._versions = {
            key: (Version(locator, self._uids[maker], ordinal), at)
            for key, locator, maker, ordinal, at in versions
            if maker in self._uids
        }
        places = {row[2] for row in self._rows["looked"]}
        places.update(
            location
            for row in self._rows["looked"]
            if row[6]
            for _, location, _ in unpack_looks(row[6])
        )
        places.update(row[4] for row in self._rows["gap"] if row[4] is not None)
        places.update(key for row in self._rows["alias"] for key in row[2:4])
        self._locators: dict[int, Locator] = dict(self._connection.rows_in(_LOCATIONS, places))

    def events(self) -> Iterator[AnyEvent]:
        yield from map(self._started, self._rows["started"])
        yield from map(self._ended, self._rows["ended"])
        yield from self._edges()
        yield from self._contents()
        yield from self._others()

    def _started(self, row: Row) -> Started:
        (_, _, n, at, uid, kind, parent, number, pid, agent, command, exe, cwd, name, image, node,
         _, _, environment, facets, _) = row  # fmt: skip
        return Started(
            execution=self._execution, n=n, at=at, activity=uid, kind=kind,
            parent=None if parent is None else self._uids.get(parent), number=number, pid=pid,
            agent=agent, command=tuple(json.loads(command)), exe=exe, cwd=cwd, name=name,
            environment=json.loads(environment), image=image, node=node, facets=json.loads(facets),
        )  # fmt: skip

    def _ended(self, row: Row) -> Ended:
        activity, n, at, status, signal = row[:5]
        return Ended(
            execution=self._execution, n=n, at=at, activity=self._uids[activity], status=status,
            signal=signal, usage=json.loads(row[10]), facets=json.loads(row[11]),
        )  # fmt: skip

    def _edges(self) -> Iterator[AnyEvent]:
        for kind, table in ((Used, "used"), (Invalidated, "invalidated")):
            for activity, n, version, at, how in self._rows[table]:
                if version in self._versions:
                    yield kind(
                        execution=self._execution, n=n, at=at, activity=self._uids[activity],
                        version=self._versions[version][0], how=how,
                    )  # fmt: skip
        for activity, n, version, at, how, finished in self._rows["generated"]:
            if version in self._versions:
                yield Generated(
                    execution=self._execution, n=n, at=at, activity=self._uids[activity],
                    version=self._versions[version][0], how=how, finished=bool(finished),
                )  # fmt: skip

    def _contents(self) -> Iterator[AnyEvent]:
        for version, n, digest, size, mode, mtime, stored, package, source in self._rows["content"]:
            if version in self._versions:
                named, at = self._versions[version]
                yield Content(
                    execution=self._execution, n=n, at=mtime if at == NEVER else at, version=named,
                    digest=digest_text(bytes(digest)) or Digest(""),
                    size=size, mode=mode, mtime=mtime,
                    stored=bool(stored), package=package, source=source,
                )  # fmt: skip

    def _others(self) -> Iterator[AnyEvent]:
        execution = self._execution
        for activity, n, location, kind, at, answer, packed in self._rows["looked"]:
            also = tuple(
                (kind, self._locators[place], answer)
                for kind, place, answer in (unpack_looks(packed) if packed else ())
            )
            yield Looked(
                execution=execution, n=n, at=at, activity=self._uids[activity], kind=kind,
                locator=self._locators[location], answer=answer, also=also,
            )  # fmt: skip
        for activity, n, source, at, via in self._rows["informed"]:
            if source in self._uids:
                yield Informed(
                    execution=execution, n=n, at=at, activity=self._uids[activity],
                    by=self._uids[source], via=via,
                )  # fmt: skip
        for _, n, a, b, at in self._rows["alias"]:
            yield Alias(execution=execution, n=n, at=at, a=self._locators[a], b=self._locators[b])
        for activity, n, what, why, location, at in self._rows["gap"]:
            yield Gap(
                execution=execution, n=n, at=at, activity=self._uids[activity], what=what, why=why,
                locator=None if location is None else self._locators[location],
            )  # fmt: skip

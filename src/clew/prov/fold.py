"""Convert events to database rows; order and repetition do not matter.

Folding the same events twice, late, in any order or in any parts gives the same rows, because
no row depends on another: ids are hashes of what they identify, and no row means "current". Unknown
event types, which a newer witness may write, are skipped.
"""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import msgspec

from clew.documents.ids import Uid
from clew.prov.event_numbers import MOVES
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
)
from clew.prov.row_keys import (
    command_name,
    digest_bytes,
    key_function,
    pack_looks,
    project_key,
    version_name,
    with_maker_prefix,
)

Row = tuple[Any, ...]

_json = msgspec.json.Encoder(order="deterministic")
_FINISHED_KINDS = MOVES | {"symlink"}
NEVER = 2**62
"""The time of a version that is known only from a content event: no other time is later."""
TOTALS = ("processes", "inputs", "outputs", "bytes", "new_bytes")


class Rows:
    """The rows of some events, by table, each list in the order of its table's key."""

    def __init__(self, project: Uid) -> None:
        self.executions: dict[Uid, None] = {}  # in the order they are first mentioned
        self.runs: set[Uid] = set()
        """Those of them that are pipeline runs."""
        self.names: dict[Uid, str] = {}
        self._project = project_key(project)
        self._activity = _Keys(key_function(project, "activity"))
        self._location = _Keys(key_function(project, "location"))
        self._version_key = key_function(project, "version")
        self._words_key = key_function(project, "words")
        self._versions: dict[Version, int] = {}
        self._version_rows: dict[int, Row] = {}
        self._started: dict[int, Row] = {}
        self._content: dict[int, Row] = {}
        self._rows: dict[str, list[Row]] = {
            table: []
            for table in (
                "ended", "used", "generated", "invalidated", "looked", "informed", "alias", "gap",
            )
        }  # fmt: skip
        self._used, self._looked = self._rows["used"], self._rows["looked"]  # most rows

    def add(self, events: Iterable[AnyEvent]) -> None:
        handlers = _HANDLERS
        executions = self.executions
        for event in events:
            handler = handlers.get(type(event))
            if handler is not None:
                executions[event.execution] = None
                handler(self, event)

    def tables(self) -> dict[str, list[Row]]:
        """The rows to insert, in this order: sorted, so that two writers lock in one order."""
        locations = [(key, self._project, locator) for locator, key in self._location.items()]
        rows: dict[str, list[Row]] = {
            "location": sorted(locations),
            "version": [self._version_rows[key] for key in sorted(self._version_rows)],
            "started": [self._started[key] for key in sorted(self._started)],
            "content": [self._content[key] for key in sorted(self._content)],
        }
        for table, facts in self._rows.items():
            rows[table] = sorted(facts, key=itemgetter(0, 1, 2))
        return rows

    def _version(self, version: Version, execution: Uid, at: int) -> int:
        key = self._versions.get(version)
        if key is None:
            locator, maker, ordinal = version.locator, version.maker, version.ordinal
            by = self._activity[maker]
            key = with_maker_prefix(by, self._version_key(version_name(locator, maker, ordinal)))
            self._versions[version] = key
            self._version_rows[key] = (
                key, self._activity[execution], self._location[locator], by, ordinal, at,
            )  # fmt: skip
        elif at < self._version_rows[key][5]:
            self._version_rows[key] = (*self._version_rows[key][:5], at)
        return key

    def _add_started(self, event: Started) -> None:
        key = self._activity[event.activity]
        known = self._started.get(key)
        if known is not None and known[2] <= event.n:
            return
        if event.kind == "run" and event.activity == event.execution:
            self.runs.add(event.execution)
        mode, collection = event.facets.get("kind"), event.facets.get("collection")
        self._started[key] = (
            key, self._activity[event.execution], event.n, event.at, event.activity, event.kind,
            None if event.parent is None else self._activity[event.parent], event.number,
            event.pid, event.agent, _text(event.command), event.exe, event.cwd, event.name,
            event.image, event.node,
            mode if isinstance(mode, str) else None,
            collection if isinstance(collection, str) else None,
            _text(event.environment), _text(event.facets), self._words(event),
        )  # fmt: skip
        if event.name and event.activity == event.execution:
            self.names[event.execution] = event.name

    def _words(self, event: Started) -> int | None:
        """The key to find programs with the same command by; None if it is not a program."""
        begun = event.facets.get("begun")
        if not isinstance(begun, dict) or event.exe is None:
            return None
        program = begun.get("program", event.exe)
        return self._words_key(command_name(str(program), event.command, event.cwd or ""))

    def _add_ended(self, event: Ended) -> None:
        totals = (event.facets.get(name) for name in TOTALS)
        self._rows["ended"].append(
            (self._activity[event.activity], event.n, event.at, event.status, event.signal,
             *(total if isinstance(total, int) else None for total in totals),
             _text(event.usage), _text(event.facets))
        )  # fmt: skip

    def _add_used(self, event: Used) -> None:
        version = self._version(event.version, event.execution, event.at)
        self._used.append((self._activity[event.activity], event.n, version, event.at, event.how))

    def _add_generated(self, event: Generated) -> None:
        version = self._version(event.version, event.execution, event.at)
        finished = int(event.finished or event.how in _FINISHED_KINDS)
        self._rows["generated"].append(
            (self._activity[event.activity], event.n, version, event.at, event.how, finished)
        )

    def _add_invalidated(self, event: Invalidated) -> None:
        version = self._version(event.version, event.execution, event.at)
        self._rows["invalidated"].append(
            (self._activity[event.activity], event.n, version, event.at, event.how)
        )

    def _add_content(self, event: Content) -> None:
        # When bytes became known says nothing about when the version was there.
        version = self._version(event.version, event.execution, NEVER)
        known = self._content.get(version)
        if known is None or known[1] < event.n:
            self._content[version] = (
                version, event.n, digest_bytes(event.digest), event.size, event.mode,
                event.mtime, int(event.stored), event.package, event.source,
            )  # fmt: skip

    def _add_looked(self, event: Looked) -> None:
        self._looked.append(
            (self._activity[event.activity], event.n, self._location[event.locator],
             event.kind, event.at, event.answer,
             pack_looks(event.also, self._location) if event.also else None)
        )  # fmt: skip

    def _add_informed(self, event: Informed) -> None:
        self._rows["informed"].append(
            (self._activity[event.activity], event.n, self._activity[event.by], event.at, event.via)
        )

    def _add_alias(self, event: Alias) -> None:
        self._rows["alias"].append(
            (self._activity[event.execution], event.n, self._location[event.a],
             self._location[event.b], event.at)
        )  # fmt: skip

    def _add_gap(self, event: Gap) -> None:
        location = None if event.locator is None else self._location[event.locator]
        self._rows["gap"].append(
            (self._activity[event.activity], event.n, event.what, event.why, location, event.at)
        )


def _text(value: object) -> str:
    return _json.encode(value).decode()


class _Keys(dict[str, int]):
    """The keys of names, each worked out once."""

    def __init__(self, key: Callable[[str], int]) -> None:
        super().__init__()
        self._key = key

    def __missing__(self, name: str) -> int:
        found = self[name] = self._key(name)
        return found


_HANDLERS: dict[type, Callable[[Rows, Any], None]] = {
    Started: Rows._add_started,
    Ended: Rows._add_ended,
    Used: Rows._add_used,
    Generated: Rows._add_generated,
    Invalidated: Rows._add_invalidated,
    Content: Rows._add_content,
    Looked: Rows._add_looked,
    Informed: Rows._add_informed,
    Alias: Rows._add_alias,
    Gap: Rows._add_gap,
}

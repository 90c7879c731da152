"""What a trace describes once and refers to by number after that: files and sets of variables.

A part of a trace gets copies of the descriptions that it refers to, so it is a complete trace.
"""

from collections.abc import Iterable
from operator import attrgetter

from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Exec,
    Look,
    Open,
    Seen,
    Variables,
    sort_records,
)


class TraceDescriptions:
    """The descriptions of one trace, by their numbers."""

    def __init__(self) -> None:
        self._files: dict[int, Open | Look] = {}
        self._variables: dict[int, Variables] = {}

    def add(self, record: AnyRecord) -> bool:
        """Keep a description; False if the record is something that happened."""
        if isinstance(record, Variables):
            self._variables[record.number] = record
            return True
        if record.image != 0:
            return False
        if isinstance(record, Open | Look):
            self._files[record.number] = record
        return True

    def file(self, number: int) -> Open | Look:
        return self._files[number]

    def complete(self, records: Iterable[AnyRecord]) -> list[AnyRecord]:
        """These records in order, with the descriptions that they refer to."""
        records = list(records)
        files: set[int] = set()
        variables: set[int] = set()
        for record in records:
            if isinstance(record, Seen):
                files.update(record.opened[1::2], record.looked)
            elif isinstance(record, Exec):
                variables.add(record.variables)
        found: list[AnyRecord] = [self._files[number] for number in sorted(files)]
        found += [self._variables[n] for n in sorted(variables) if n in self._variables]
        return sorted([*found, *sort_records(records)], key=attrgetter("seq"))

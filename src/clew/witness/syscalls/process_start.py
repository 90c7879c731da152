"""What each program was started with, and which part of the output is its own.

A later run may ask whether a program need be started again: it must then be started with the
same descriptors and limits as here, and the bytes it printed must be known from those of others.
Both are the facet `begun` of the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from clew.prov.locators import file_locator
from clew.witness.syscalls.trace_format import Exec, Held, Mark, Open, Opening, Place

STREAMS = ("stdout", "stderr")


def text(path: bytes) -> str:
    """A path as text that loses nothing."""
    return file_locator("", path).removeprefix("file://")


def outside(openings: Iterable[Opening]) -> frozenset[tuple[int, bytes]]:
    """Of the first program's descriptors, those that came from whoever started the command and are
    none of its three: leftovers of a shell or a terminal, which are not there another time."""
    return frozenset((opening.fd, opening.name) for opening in openings if opening.fd > 2)


def described(
    openings: Iterable[Opening],
    streams: Mapping[bytes, str],
    leftovers: frozenset[tuple[int, bytes]],
) -> list[list[Any]]:
    """Descriptors as [number, way, name] and, of a regular file, [… place in it, flags, size].
    Pipes and sockets have no names that last: those of one program are numbered."""
    numbers: dict[bytes, int] = {}
    answer: list[list[Any]] = []
    for opening in sorted(openings):
        name = opening.name
        if (opening.fd, name) in leftovers:
            continue
        if name in streams:
            told = streams[name]
        elif name.startswith(b"/"):
            told = text(name)
        else:
            told = f"{name.partition(b':')[0].decode()}:{numbers.setdefault(name, len(numbers))}"
        place = [opening.at, opening.flags, opening.size] if opening.at >= 0 else []
        answer.append([opening.fd, opening.way, told, *place])
    return answer


class ProcessStarts(Struct, eq=False):
    """Collects what the trace tells; by image."""

    begun: dict[int, dict[str, Any]] = field(default_factory=dict)
    output: dict[int, dict[str, Any]] = field(default_factory=dict)
    _marks: dict[int, Mark] = field(default_factory=dict)
    _programs: dict[int, bytes] = field(default_factory=dict)
    _leftovers: frozenset[tuple[int, bytes]] | None = None

    def facet(self, image: int) -> dict[str, Any] | None:
        begun = self.begun.get(image)
        if begun is None or image not in self.output:
            return begun
        return {**begun, "output": self.output[image]}

    def loaded(self, image: int, what: Open, run: Exec | None) -> None:
        """The program that was asked for, where that is a script and another one runs it."""
        if run is not None and what.path == run.given and what.real not in (None, run.exe):
            self._programs[image] = what.real or b""

    def held(self, record: Held, run: Exec | None, streams: Mapping[bytes, str]) -> None:
        if run is None:
            return
        if self._leftovers is None:
            self._leftovers = outside(record.openings)
        held = described(record.openings, streams, self._leftovers)
        facet: dict[str, Any] = {"at": run.at, "held": held}
        program = self._programs.pop(record.image, None)
        if program is not None:
            facet["program"] = text(program)
        if record.standing is not None:
            facet["standing"] = record.standing.decode(errors="replace").replace("\t", " ")
        self.begun[record.image] = facet

    def mark(self, record: Mark) -> None:
        """A stretch of the output that nobody else wrote to meanwhile; None: somebody did."""
        if not record.over:
            self._marks[record.image] = record
            return
        first = self._marks.pop(record.image, None)
        if first is None:
            return
        stretches: dict[str, Any] = {}
        for name in STREAMS:
            since, until = getattr(first, name), getattr(record, name)
            if until >= 0:
                known = since >= 0 and (record.alone or since == until)
                stretches[name] = [since, until] if known else None
        if stretches:
            self.output.setdefault(record.image, {}).update(stretches)

    def place(self, record: Place) -> None:
        """Where it left a file that others may read on."""
        places = self.output.setdefault(record.image, {}).setdefault("places", {})
        places[str(record.fd)] = record.reached

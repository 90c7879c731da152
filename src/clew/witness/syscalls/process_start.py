"""The facet `begun` of a process: what its program was started with, and its part of the output.

A program can be reused later only if it would be started with the same descriptors and limits, and
if the bytes that it wrote to the output can be told from those of other processes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from clew.prov.locators import file_locator
from clew.witness.syscalls.trace_format import Exec, Held, Mark, Open, Opening, Place

STREAMS = ("stdout", "stderr")


def path_text(path: bytes) -> str:
    """A path as lossless text."""
    return file_locator("", path).removeprefix("file://")


def leftover_descriptors(openings: Iterable[Opening]) -> frozenset[tuple[int, bytes]]:
    """The descriptors of the first program beyond the three standard streams: leftovers of a shell
    or a terminal, which differ from one start to the next."""
    return frozenset((opening.fd, opening.name) for opening in openings if opening.fd > 2)


def describe_descriptors(
    openings: Iterable[Opening],
    streams: Mapping[bytes, str],
    leftovers: frozenset[tuple[int, bytes]],
) -> list[list[Any]]:
    """Descriptors as [number, access bits, name] and, for a regular file, [… offset, flags, size].
    Pipes and sockets have no stable names: those of one program are numbered."""
    numbers: dict[bytes, int] = {}
    descriptors: list[list[Any]] = []
    for opening in sorted(openings):
        name = opening.name
        if (opening.fd, name) in leftovers:
            continue
        if name in streams:
            text_name = streams[name]
        elif name.startswith(b"/"):
            text_name = path_text(name)
        else:
            text_name = (
                f"{name.partition(b':')[0].decode()}:{numbers.setdefault(name, len(numbers))}"
            )
        offset = [opening.at, opening.flags, opening.size] if opening.at >= 0 else []
        descriptors.append([opening.fd, opening.way, text_name, *offset])
    return descriptors


class ProcessStarts(Struct, eq=False):
    """Collects the facets, by image."""

    facets: dict[int, dict[str, Any]] = field(default_factory=dict)
    output: dict[int, dict[str, Any]] = field(default_factory=dict)
    _marks: dict[int, Mark] = field(default_factory=dict)
    _programs: dict[int, bytes] = field(default_factory=dict)
    _leftovers: frozenset[tuple[int, bytes]] | None = None

    def facet(self, image: int) -> dict[str, Any] | None:
        begun = self.facets.get(image)
        if begun is None or image not in self.output:
            return begun
        return {**begun, "output": self.output[image]}

    def set_program(self, image: int, what: Open, executed: Exec | None) -> None:
        """Remember the script that was executed, if an interpreter runs it."""
        if (
            executed is not None
            and what.path == executed.given
            and what.real not in (None, executed.exe)
        ):
            self._programs[image] = what.real or b""

    def add(self, record: Held, executed: Exec | None, streams: Mapping[bytes, str]) -> None:
        if executed is None:
            return
        if self._leftovers is None:
            self._leftovers = leftover_descriptors(record.openings)
        held = describe_descriptors(record.openings, streams, self._leftovers)
        facet: dict[str, Any] = {"at": executed.at, "held": held}
        program = self._programs.pop(record.image, None)
        if program is not None:
            facet["program"] = path_text(program)
        if record.standing is not None:
            facet["standing"] = record.standing.decode(errors="replace").replace("\t", " ")
        self.facets[record.image] = facet

    def add_mark(self, record: Mark) -> None:
        """Record the range of the output that the program wrote; None: others wrote to it, too."""
        if not record.over:
            self._marks[record.image] = record
            return
        first = self._marks.pop(record.image, None)
        if first is None:
            return
        ranges: dict[str, Any] = {}
        for name in STREAMS:
            since, until = getattr(first, name), getattr(record, name)
            if until >= 0:
                exclusive = since >= 0 and (record.alone or since == until)
                ranges[name] = [since, until] if exclusive else None
        if ranges:
            self.output.setdefault(record.image, {}).update(ranges)

    def add_position(self, record: Place) -> None:
        """Record the offset at which the program left a file that others may read on."""
        places = self.output.setdefault(record.image, {}).setdefault("places", {})
        places[str(record.fd)] = record.reached

"""What is known of one execution between hearing the records and telling the events."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from clew.redaction import Redactor
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.data_flows import DataFlows
from clew.witness.syscalls.process_start import ProcessStarts
from clew.witness.syscalls.version_tracker import ObservedVersion, VersionTracker


class TraceContext(Struct, frozen=True):
    """Where it plays: one execution on one machine."""

    execution: str
    machine: str
    boot: str
    variables: Mapping[str, str]
    """The variables of the execution, as recorded: a process tells only what differs."""
    redactor: Redactor
    ignore: tuple[bytes, ...]
    """Folders of Clew's own: whatever happens there is not the command's doing."""
    streams: Mapping[bytes, str]
    """`pipe:[N]` or a terminal's path → stdin, stdout or stderr."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """The seals of the execution's secret variables."""


class TracedProcess(Struct, eq=False):
    uid: str
    number: int
    parent: int
    pid: int
    at: int
    exec: trace_format.Exec | None = None
    exit: trace_format.Exit | None = None
    reused: str | None = None
    """The process, of another execution, that did what this one need not do again."""


Fact = tuple[str, str, str]
"""Something looked at: its kind, its locator, and the answer."""


class ProcessFacts(Struct, eq=False):
    """What one process did, with when it first did it."""

    used: dict[tuple[ObservedVersion, str], int] = field(default_factory=dict)
    looked: dict[Fact, int] = field(default_factory=dict)

    _before: ProcessFacts | None = None

    def begin_anew(self) -> None:
        """A forked process becomes a program of its own: what it meets again counts from now."""
        self._before = ProcessFacts(self.used, self.looked)
        self.used, self.looked = {}, {}

    def opened(self, met: ObservedVersion) -> bool:
        before = self._before.used if self._before else {}
        return (met, "open") in self.used or (met, "open") in before

    def end(self) -> None:
        """All it did, whichever program it was then."""
        if self._before is not None:
            self.used = self._before.used | self.used
            self.looked = self._before.looked | self.looked


class TraceState(Struct, eq=False):
    paths: VersionTracker = field(default_factory=VersionTracker)
    flows: DataFlows = field(default_factory=DataFlows)
    beginnings: ProcessStarts = field(default_factory=ProcessStarts)
    processes: dict[int, TracedProcess] = field(default_factory=dict)
    tales: dict[int, ProcessFacts] = field(default_factory=dict)
    invalidated: list[tuple[int, ObservedVersion, str, int]] = field(default_factory=list)
    aliases: set[tuple[bytes, bytes]] = field(default_factory=set)
    gaps: list[tuple[int, str, str, bytes | None, int]] = field(default_factory=list)
    peers: dict[tuple[int, str, str], int] = field(default_factory=dict)
    streams: dict[tuple[int, str, int], int] = field(default_factory=dict)
    variables: dict[int, dict[str, str]] = field(default_factory=dict)
    seals: dict[int, dict[str, str]] = field(default_factory=dict)
    links: dict[bytes, bytes] = field(default_factory=dict)

    def command(self, image: int) -> tuple[bytes, ...]:
        """A process that never became another program runs the one it was born from."""
        process = self.processes[image]
        while process.exec is None and process.parent:
            process = self.processes[process.parent]
        return tuple(process.exec.arguments) if process.exec else ()

    def root_exit(self) -> trace_format.Exit | None:
        """How the command itself ended, whatever programs it became meanwhile."""
        first = next(iter(self.processes.values()), None)
        if first is None:
            return None
        stem = first.uid.rpartition("-")[0]
        ends = (p.exit for p in self.processes.values() if p.uid.rpartition("-")[0] == stem)
        return next((end for end in ends if end is not None), None)

    def found(self) -> list[bytes]:
        """Paths that were there before."""
        return [line[0].path for line in self.paths if line[0].maker is None]

    def left(self) -> list[bytes]:
        """Paths that this execution wrote and that are still there."""
        last = (line[-1] for line in self.paths)
        return [met.path for met in last if met.maker is not None and not met.gone]

    def totals(self) -> tuple[int, int]:
        """Files that were only read, and files that are there because of this execution."""
        inputs = outputs = 0
        for line in self.paths:
            if len(line) == 1 and line[0].maker is None:  # most by far
                inputs += line[0].read
            elif not any(met.maker is not None for met in line):
                inputs += any(met.read for met in line)
            elif not line[-1].gone:
                outputs += 1
        return inputs, outputs

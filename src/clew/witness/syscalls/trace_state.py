"""The state of one execution: the interpreter fills it from the trace, the event builder reads it.

An image is one program in one process: a process gets a new image with every exec. Images are
numbered by the tracer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from clew.documents.ids import Locator, Uid
from clew.prov.event_numbers import MOVES
from clew.prov.events import Observation
from clew.prov.locators import is_device_path
from clew.redaction import Redactor
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.data_flows import DataFlows
from clew.witness.syscalls.process_start import ProcessStarts
from clew.witness.syscalls.version_tracker import ObservedVersion, VersionTracker


class TraceContext(Struct, frozen=True):
    """The execution, the machine it ran on, and the settings of the record."""

    execution: Uid
    locate: Callable[[bytes], Locator]
    """The locator of an absolute path, as the command saw it."""
    boot: str
    variables: Mapping[str, str]
    """The recorded variables of the execution: a process records only what differs from them."""
    redactor: Redactor
    ignore: tuple[bytes, ...]
    """Clew's own directories, which no record mentions."""
    streams: Mapping[bytes, str]
    """`pipe:[N]` or a terminal's path → stdin, stdout or stderr."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """The seals of the execution's secret variables."""


class TracedProcess(Struct, eq=False):
    """One image."""

    uid: Uid
    number: int
    parent: int
    pid: int
    at: int
    exec: trace_format.Exec | None = None
    exit: trace_format.Exit | None = None
    reused: Uid | None = None
    """The process of an earlier execution whose results were reused instead of running this."""


class ProcessInputs(Struct, eq=False):
    """The versions and observations of one image, each with the time of the first use."""

    used: dict[tuple[ObservedVersion, str], int] = field(default_factory=dict)
    looked: dict[Observation, int] = field(default_factory=dict)

    _before_exec: ProcessInputs | None = None

    def start_program(self) -> None:
        """A forked process executes its first program: times count from now on."""
        self._before_exec = ProcessInputs(self.used, self.looked)
        self.used, self.looked = {}, {}

    def has_opened(self, observed: ObservedVersion) -> bool:
        before = self._before_exec.used if self._before_exec else {}
        return (observed, "open") in self.used or (observed, "open") in before

    def merge(self) -> None:
        """Join the inputs from before and after the exec."""
        if self._before_exec is not None:
            self.used = self._before_exec.used | self.used
            self.looked = self._before_exec.looked | self.looked


class TraceState(Struct, eq=False):
    """The facts that the trace shows about one execution."""

    versions: VersionTracker = field(default_factory=VersionTracker)
    flows: DataFlows = field(default_factory=DataFlows)
    process_starts: ProcessStarts = field(default_factory=ProcessStarts)
    processes: dict[int, TracedProcess] = field(default_factory=dict)
    inputs_of_process: dict[int, ProcessInputs] = field(default_factory=dict)
    invalidated: list[tuple[int, ObservedVersion, str, int]] = field(default_factory=list)
    """(image, version, how, time)."""
    aliases: set[tuple[bytes, bytes]] = field(default_factory=set)
    """Hard links: (path, new path)."""
    gaps: list[tuple[int, str, str, bytes | None, int]] = field(default_factory=list)
    """(image, what, why, path, time)."""
    peers: dict[tuple[int, Locator, str], int] = field(default_factory=dict)
    """(image, locator or URL, how) → time."""
    streams: dict[tuple[int, str, int], int] = field(default_factory=dict)
    """(image, stream, access bits) → time."""
    variables: dict[int, dict[str, str]] = field(default_factory=dict)
    """Redacted variables, by the number of the set in the trace; `seals` alike."""
    seals: dict[int, dict[str, str]] = field(default_factory=dict)
    links: dict[bytes, bytes] = field(default_factory=dict)
    """Symbolic links that were followed: path → target."""

    def record_use(self, image: int, observed: ObservedVersion, how: str, at: int) -> None:
        if how not in MOVES:
            observed.read = True
        self.inputs_of_process[image].used.setdefault((observed, how), at)

    def invalidate(self, image: int, observed: ObservedVersion, how: str, at: int) -> None:
        observed.gone = True
        self.invalidated.append((image, observed, how, at))

    def command(self, image: int) -> tuple[bytes, ...]:
        """The arguments of its program: its own, or those it was forked with."""
        process = self.processes[image]
        while process.exec is None and process.parent:
            process = self.processes[process.parent]
        return tuple(process.exec.arguments) if process.exec else ()

    def root_exit(self) -> trace_format.Exit | None:
        """The exit of the command's first process, whichever program it executed last."""
        first = next(iter(self.processes.values()), None)
        if first is None:
            return None
        stem = first.uid.rpartition("-")[0]
        ends = (p.exit for p in self.processes.values() if p.uid.rpartition("-")[0] == stem)
        return next((end for end in ends if end is not None), None)

    def preexisting_paths(self) -> list[bytes]:
        """Paths that existed before the execution."""
        return [history[0].path for history in self.versions if history[0].maker is None]

    def remaining_paths(self) -> list[bytes]:
        """Paths that this execution wrote and did not remove."""
        last = (history[-1] for history in self.versions)
        return [
            observed.path for observed in last if observed.maker is not None and not observed.gone
        ]

    def totals(self) -> tuple[int, int]:
        """The number of files that were only read, and of files that this execution left. Devices
        are not files."""
        inputs = outputs = 0
        for history in self.versions:
            if is_device_path(history[0].path):
                continue
            if len(history) == 1 and history[0].maker is None:  # by far the most
                inputs += history[0].read
            elif not any(observed.maker is not None for observed in history):
                inputs += any(observed.read for observed in history)
            elif not history[-1].gone:
                outputs += 1
        return inputs, outputs

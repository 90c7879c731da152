"""Decide which programs of an incremental repeat must run: the tracer asks before each one starts.

Look for recorded programs that started the same way. The first whose recorded dependencies all hold
is not run: its outputs are restored, its output printed, and its exit status returned. In doubt,
the program runs.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from clew import db
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.locators import decode_text
from clew.prov.queries.execution_record import Activity, ExecutionRecord
from clew.prov.queries.formats import process_id
from clew.redaction import MASK
from clew.replay.reuse.input_check import InputCheck
from clew.replay.reuse.output_restore import (
    MapTime,
    can_restore,
    keep_times,
    renew_times,
    restore_outputs,
)
from clew.replay.reuse.previous_executions import PreviousExecution, PreviousExecutions
from clew.replay.reuse.reuse_report import describe_reuse
from clew.replay.reuse.start_match import ProgramStart, find_start_difference
from clew.replay.reuse.subtree import NotReusable, Subtree
from clew.replay.sandbox.initial_files import listing_reader
from clew.replay.sandbox.sandbox_reader import SandboxFiles
from clew.run.launch.skip_protocol import RunContext
from clew.safe_path import KERNEL_DIRECTORIES
from clew.settings import Settings
from clew.store import Store, Stored
from clew.witness.syscalls import process_start
from clew.witness.syscalls.content_capture import KnownContent
from clew.witness.syscalls.reused_subtree import ReusedSubtree
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.trace_format import Question as Asked
from clew.witness.syscalls.version_tracker import file_stat_of


@dataclass
class IncrementalDecider:
    """Decides for one execution; see `clew.run.launch.skip_protocol.Decider`."""

    directory: ProjectDirectory
    settings: Settings
    reference: ExecutionRecord
    """The repeated execution; its processes are tried first."""
    machine: str
    pinned: object = None
    ran: list[dict[str, Any]] = field(default_factory=list)
    """What ran and why, as the JSON document shows it."""
    reused: list[dict[str, Any]] = field(default_factory=list)
    reused_subtrees: dict[int, ReusedSubtree] = field(default_factory=dict)

    def begin(self, context: RunContext) -> None:
        self._around = context
        self._files = SandboxFiles(context.files, context.given)
        self._leftovers: frozenset[tuple[int, bytes]] | None = None
        self._stack: ExitStack | None = None

    def decide(self, question: Asked, copies: Mapping[int, int]) -> tuple[int, int] | None:
        self._files.forget()
        executions = self._open()
        start = self._start(question)
        command = list(start.command)
        why = ""
        for execution, process in executions.alike(start):
            reason = self._try(execution, process, start, copies)
            if reason is None:
                number = execution.record.execution.number
                source = process_id(number, process.number, process.uid)
                self.reused.append({"command": command, "from": source})
                token = len(self.reused_subtrees)
                return execution.subtree(process).status, token
            why = why or reason
        self.ran.append({"command": command, "why": why or executions.nearest(start)})
        return None

    def close(self) -> None:
        if self._stack is not None:
            self._stack.close()

    # -- what is asked

    def _open(self) -> PreviousExecutions:
        """Opened by the thread that asks, and when it first does."""
        if self._stack is None:
            self._stack = ExitStack()
            self._store = self._stack.enter_context(Store(self.directory.store))
            connection = self._stack.enter_context(
                db.connect(self.directory.graph, address=self.settings.graph)
            )
            graph = Graph(connection, self.directory.uid, signers=self.settings.config)
            self._names = listing_reader(self._store)
            self._executions = PreviousExecutions(graph, self.reference, self._names)
        return self._executions

    def _start(self, question: Asked) -> ProgramStart:
        first = self._leftovers is None
        if self._leftovers is None:
            self._leftovers = process_start.leftover_descriptors(question.openings)
        redactor = self._around.redactor
        entries = (decode_text(entry).partition("=") for entry in question.variables)
        variables = {name: value for name, _, value in entries if name}
        standing = question.standing
        return ProgramStart(
            program=process_start.path_text(question.program),
            command=redactor.arguments([decode_text(word) for word in question.arguments]).words,
            cwd=decode_text(question.cwd),
            environment=redactor.environment(variables),
            held=process_start.describe_descriptors(
                question.openings, self._around.streams, self._leftovers
            ),
            standing=None if standing is None else decode_text(standing).replace("\t", " "),
            reference=self.reference,
            others=question.others,
            first=first,
            seals=redactor.seals(variables),
        )

    # -- what is answered

    def _try(
        self,
        execution: PreviousExecution,
        process: Activity,
        start: ProgramStart,
        copies: Mapping[int, int],
    ) -> str | None:
        """Let the process stand for the start, or say why it cannot."""
        try:
            subtree = execution.subtree(process)
        except NotReusable as why:
            return str(why)
        check = InputCheck(subtree, self._files, self._names, execution.names_at)
        why_not = (
            self._untold(subtree, start)
            or find_start_difference(subtree, start)
            or check.find_difference()
        )
        if why_not is not None:
            return why_not
        missing = [file.fd for file in subtree.handed if file.fd not in copies]
        if missing or not can_restore(subtree, self._around.files.path) or not self._whole(subtree):
            return "there is no place for what it left"
        times = renew_times(subtree, check.times) if self.ran else keep_times
        self._stand_in(subtree, start, copies, times)
        return None

    def _untold(self, subtree: Subtree, start: ProgramStart) -> str | None:
        """What neither its words nor its variables say."""
        if subtree.record.facets.get("pinned") != self.pinned:
            return "the clock or randomness was pinned otherwise"
        if self.pinned and not (start.first and subtree.root.number == 1):
            return "what it is told of clock and randomness depends on where it is started"
        if any("\ufffd" in word or MASK in word for word in start.command):
            return "its words are not all recorded"
        return None

    def _whole(self, subtree: Subtree) -> bool:
        """Whether every byte it left can be had."""
        versions = [left.version for left in subtree.outputs.values()]
        versions += [file.version for file in subtree.handed]
        versions += [subtree.stream(name) for name in subtree.printed]
        return all(v is None or self._store.has(v.digest or "") for v in versions)

    def _stand_in(
        self, subtree: Subtree, start: ProgramStart, copies: Mapping[int, int], times: MapTime
    ) -> None:
        before = dict(self._met(subtree))
        opened, after = restore_outputs(subtree, self._around.files.path, self._read, copies, times)
        self._learn(subtree, before, opened, after)
        self.reused_subtrees[len(self.reused_subtrees) + 1] = describe_reuse(
            subtree, start, machine=self.machine, before=before, opened=opened, after=after
        )

    def _read(self, digest: str) -> Iterator[bytes]:
        return self._store.read(digest)

    def _met(self, subtree: Subtree) -> Iterator[tuple[bytes, FileStat]]:
        """The files it would have met, as they are."""
        for key in subtree.members:
            for edge in subtree.index.use_edges[key]:
                path = subtree.index.paths[edge.version]
                if path is not None and not path.startswith(KERNEL_DIRECTORIES):
                    yield from self._file_stat(path)
        for change in subtree.changes:
            if not change.there:
                yield from self._file_stat(change.path)

    def _file_stat(self, path: bytes) -> Iterator[tuple[bytes, FileStat]]:
        try:
            yield path, file_stat_of(self._files.lstat(path))
        except OSError:
            return

    def _learn(
        self,
        subtree: Subtree,
        before: Mapping[bytes, FileStat],
        opened: Mapping[bytes, FileStat],
        after: Mapping[bytes, FileStat],
    ) -> None:
        """What these files hold is known without reading them again."""
        for dependency in subtree.dependencies:
            version = dependency.version
            if version is not None and version.digest is not None and dependency.path in before:
                stored = Stored(version.digest, version.size or 0)
                self._around.contents.preset(
                    before[dependency.path], KnownContent(stored, version.stored)
                )
        appended = {path for path, file_stat in opened.items() if file_stat.size}
        versions = {path: left.version for path, left in subtree.outputs.items()}
        versions |= {file.path: file.version for file in subtree.handed}
        for path, version in versions.items():
            if version is not None and version.digest and path in after and path not in appended:
                stored = Stored(version.digest, version.size or 0)
                self._around.contents.preset(after[path], KnownContent(stored, version.stored))

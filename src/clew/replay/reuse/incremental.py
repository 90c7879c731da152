"""Decide which programs of an incremental repeat must run: the tracer asks before each one starts.

Look for recorded programs that started the same way. The first whose recorded dependencies all hold
is not run: its outputs are restored, its output printed, and its exit status returned. In doubt,
the program runs.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from clew import db
from clew.documents.executions.repeats import RanProgram, ReusedProgram
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
from clew.replay.reuse.reuse_report import ReuseDescription
from clew.replay.reuse.start_match import ProgramStart, find_start_difference
from clew.replay.reuse.subtree import NotReusable, Subtree
from clew.replay.sandbox.initial_files import make_listing_reader
from clew.replay.sandbox.sandbox_reader import SandboxFiles
from clew.run.launch.skip_protocol import RunContext
from clew.safe_path import KERNEL_DIRECTORIES
from clew.settings import Settings
from clew.store import Store, Stored
from clew.witness.syscalls import process_start
from clew.witness.syscalls.content_capture import KnownContent
from clew.witness.syscalls.reused_subtree import ReusedSubtree
from clew.witness.syscalls.trace_format import FileStat, Question
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
    ran: list[RanProgram] = field(default_factory=list)
    reused: list[ReusedProgram] = field(default_factory=list)
    reused_subtrees: dict[int, ReusedSubtree] = field(default_factory=dict)

    def begin(self, context: RunContext) -> None:
        self._context = context
        self._files = SandboxFiles(context.files, context.provided)
        self._leftovers: frozenset[tuple[int, bytes]] | None = None
        self._stack: ExitStack | None = None

    def decide(self, question: Question, copies: Mapping[int, int]) -> tuple[int, int] | None:
        self._files.forget()
        executions = self._open()
        start = self._start(question)
        command = list(start.command)
        why = ""
        for execution, process in executions.find_same_start(start):
            reason = self._try_reuse(execution, process, start, copies)
            if reason is None:
                number = execution.record.execution.number
                source = process_id(number, process.number, process.uid)
                self.reused.append(ReusedProgram(command=tuple(command), source=source))
                token = len(self.reused_subtrees)
                return execution.subtree(process).status, token
            why = why or reason
        why = why or executions.describe_difference(start)
        self.ran.append(RanProgram(command=tuple(command), why=why))
        return None

    def close(self) -> None:
        if self._stack is not None:
            self._stack.close()

    def _open(self) -> PreviousExecutions:
        """Open the store and the graph on first use, in the thread that uses them."""
        if self._stack is None:
            self._stack = ExitStack()
            self._store = self._stack.enter_context(Store(self.directory.store))
            opened = db.connect(self.directory.graph, address=self.settings.graph)
            connection = self._stack.enter_context(opened)
            graph = Graph(connection, self.directory.uid, signers=self.settings.config)
            self._names = make_listing_reader(self._store)
            self._executions = PreviousExecutions(graph, self.reference, self._names)
        return self._executions

    def _start(self, question: Question) -> ProgramStart:
        first = self._leftovers is None
        if self._leftovers is None:
            self._leftovers = process_start.leftover_descriptors(question.openings)
        redactor = self._context.redactor
        entries = (decode_text(entry).partition("=") for entry in question.variables)
        variables = {name: value for name, _, value in entries if name}
        standing = question.standing
        return ProgramStart(
            program=process_start.path_text(question.program),
            command=redactor.arguments([decode_text(word) for word in question.arguments]).words,
            cwd=decode_text(question.cwd),
            environment=redactor.environment(variables),
            held=process_start.describe_descriptors(
                question.openings, self._context.streams, self._leftovers
            ),
            standing=None if standing is None else decode_text(standing).replace("\t", " "),
            reference=self.reference,
            others=question.others,
            first=first,
            seals=redactor.seals(variables),
        )

    def _try_reuse(
        self,
        execution: PreviousExecution,
        process: Activity,
        start: ProgramStart,
        copies: Mapping[int, int],
    ) -> str | None:
        """Reuse the recorded process for this start, or say why that is not possible."""
        try:
            subtree = execution.subtree(process)
        except NotReusable as why:
            return str(why)
        check = InputCheck(subtree, self._files, self._names, execution.names_at)
        why_not = (
            self._context_difference(subtree, start)
            or find_start_difference(subtree, start)
            or check.find_difference()
        )
        if why_not is not None:
            return why_not
        missing = [file.fd for file in subtree.handed if file.fd not in copies]
        if (
            missing
            or not can_restore(subtree, self._context.files.path)
            or not self._has_all_content(subtree)
        ):
            return "its outputs cannot be restored"
        times = renew_times(subtree, check.times) if self.ran else keep_times
        self._reuse(subtree, start, copies, times)
        return None

    def _context_difference(self, subtree: Subtree, start: ProgramStart) -> str | None:
        """Differences outside its arguments and variables."""
        if subtree.record.facets.get("pinned") != self.pinned:
            return "the clock or randomness was pinned differently"
        if self.pinned and not (start.first and subtree.root.number == 1):
            return "its pinned clock and randomness depend on where it is started"
        if any("\ufffd" in word or MASK in word for word in start.command):
            return "its arguments are not completely recorded"
        return None

    def _has_all_content(self, subtree: Subtree) -> bool:
        """Whether the content of all its outputs is stored."""
        versions = [left.version for left in subtree.outputs.values()]
        versions += [file.version for file in subtree.handed]
        versions += [subtree.stream(name) for name in subtree.printed]
        return all(v is None or (v.digest and self._store.has(v.digest)) for v in versions)

    def _reuse(
        self, subtree: Subtree, start: ProgramStart, copies: Mapping[int, int], times: MapTime
    ) -> None:
        before = dict(self._found_files(subtree))
        root, read = self._context.files.path, self._store.read
        opened, after = restore_outputs(subtree, root, read, copies, times)
        self._preset_contents(subtree, before, opened, after)
        described = ReuseDescription(subtree, start, self.machine, before, opened, after)
        self.reused_subtrees[len(self.reused_subtrees) + 1] = described.describe()

    def _found_files(self, subtree: Subtree) -> Iterator[tuple[bytes, FileStat]]:
        """The current state of the files that it would have read or removed."""
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

    def _preset_contents(
        self,
        subtree: Subtree,
        before: Mapping[bytes, FileStat],
        opened: Mapping[bytes, FileStat],
        after: Mapping[bytes, FileStat],
    ) -> None:
        """Tell the capture the content of these files, so that it does not read them again."""
        known = [(before.get(one.path), one.version) for one in subtree.dependencies]
        appended = {path for path, file_stat in opened.items() if file_stat.size}
        versions = {path: left.version for path, left in subtree.outputs.items()}
        versions |= {file.path: file.version for file in subtree.handed}
        known += [(after.get(path), v) for path, v in versions.items() if path not in appended]
        for file_stat, version in known:
            if file_stat is not None and version is not None and version.digest is not None:
                stored = Stored(version.digest, version.size or 0)
                self._context.contents.preset(file_stat, KnownContent(stored, version.stored))

"""Interpret the records of a trace: which process used and wrote which version of which file.

The interpreter handles the records in order and fills a `TraceState`. It claims nothing that the
trace does not show; what the tracer could not see becomes a gap.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from clew.documents.ids import Locator, Uid
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.content_capture import is_file
from clew.witness.syscalls.data_flows import READS, WRITES, peer_locator
from clew.witness.syscalls.directories import DirectoryListings, Listing
from clew.witness.syscalls.file_changes import FileChanges
from clew.witness.syscalls.observations import Observations, normalize_path
from clew.witness.syscalls.trace_contents import TraceContents
from clew.witness.syscalls.trace_format import AnyRecord
from clew.witness.syscalls.trace_state import ProcessInputs, TraceContext, TracedProcess, TraceState

if TYPE_CHECKING:
    from clew.witness.syscalls.reused_subtree import ReusedSubtree, SubtreeReplayer


def interpret(
    context: TraceContext,
    trace: Sequence[AnyRecord],
    contents: TraceContents,
    reused: Mapping[int, ReusedSubtree] | None = None,
) -> TraceState:
    """Interpret a trace, whose records are in order, and store the files that the execution left.

    `reused`: the subtrees that were reused instead of run, by the token in the `Reused` record.
    """
    state = TraceState()
    interpreter = Interpreter(context, state, contents)
    interpreter.reused = reused or {}
    interpreter.interpret(trace)
    contents.store_final(path for path in state.remaining_paths() if is_file(path))
    return state


_NO_IMAGE = 0
"""The image of records that only describe a numbered open: a `Seen` record names the readers."""


class Interpreter:
    """Interprets the records of one execution."""

    def __init__(self, context: TraceContext, state: TraceState, contents: TraceContents) -> None:
        self._context = context
        self._observations = Observations(context, state, contents.files.readlink)
        self._state = state
        self._versions = state.versions
        self._flows = state.flows
        self._processes = state.processes
        self._inputs_of_process = state.inputs_of_process
        self._listings = DirectoryListings(contents)
        self._changes = FileChanges(state, self._observations, self._listings)
        self.reused: Mapping[int, ReusedSubtree] = {}
        self._replayer: SubtreeReplayer | None = None
        self._final_image: dict[int, int] = {}  # of processes that were reused

    def interpret(self, trace: Sequence[AnyRecord]) -> None:
        handlers: dict[type, Callable[..., None]] = {
            trace_format.Spawn: self._spawn,
            trace_format.Exec: self._exec,
            trace_format.Variables: self._environment,
            trace_format.Exit: self._exit,
            trace_format.Open: self._open,
            trace_format.ReadOpen: self._read_open,
            trace_format.Seen: self._seen,
            trace_format.Change: self._changes.change,
            trace_format.Descriptor: self._descriptor,
            trace_format.Net: self._net,
            trace_format.Hidden: self._hidden,
            trace_format.Fetch: self._fetch,
            trace_format.Held: self._held,
            trace_format.Mark: self._state.process_starts.add_mark,
            trace_format.Place: self._state.process_starts.add_position,
            trace_format.Signal: self._signal,
            trace_format.Reused: self._reused,
        }
        for record in trace:
            if type(record) is trace_format.Look:
                self._observations.add_look(record)
        for entry in trace_format.expand_opens(trace):
            handler = handlers.get(type(entry))
            if handler is not None:
                handler(entry)
        for inputs in self._inputs_of_process.values():
            inputs.merge()
        for listing, names in self._listings.resolve():
            self._observations.record(listing.image, "listing", listing.path, names, listing.at)

    def _spawn(self, record: trace_format.Spawn) -> None:
        number = len(self._processes) + 1
        uid = Uid(f"{self._context.boot}-{record.pid}-{record.started}-0")
        self._processes[record.image] = TracedProcess(
            uid, number, record.parent, record.pid, record.at
        )
        self._inputs_of_process[record.image] = ProcessInputs()
        self._versions.add_process(record.image, record.parent)

    def _exec(self, record: trace_format.Exec) -> None:
        if record.image == record.previous:
            self._processes[record.image].exec = record
            self._inputs_of_process[record.image].start_program()
            self._versions.close_versions(record.image)
        else:
            self._replace_image(record, record)

    def _replace_image(
        self, record: trace_format.Exec | trace_format.Reused, executed: trace_format.Exec | None
    ) -> None:
        """A process executes another program, and so gets a new image."""
        before = self._processes[record.previous]
        self._versions.add_process(record.image, record.previous)
        self._versions.end_process(record.previous, record.at)
        stem, _, ordinal = before.uid.rpartition("-")
        self._processes[record.image] = TracedProcess(
            Uid(f"{stem}-{int(ordinal) + 1}"),
            len(self._processes) + 1,
            record.previous,
            record.pid,
            record.at,
            exec=executed,
        )
        self._inputs_of_process[record.image] = ProcessInputs()

    def _reused(self, record: trace_format.Reused) -> None:
        """A program was not started: replay what it did in the earlier execution."""
        if record.image != record.previous:
            self._replace_image(record, None)
        else:
            self._inputs_of_process[record.image].start_program()
            self._versions.close_versions(record.image)
        subtree = self.reused.get(record.token)
        if subtree is not None:
            if self._replayer is None:
                from clew.witness.syscalls.reused_subtree import SubtreeReplayer

                self._replayer = SubtreeReplayer(self._context, self._state)
            self._final_image[record.image] = self._replayer.replay(subtree, record)

    def _held(self, record: trace_format.Held) -> None:
        executed = self._processes[record.image].exec
        self._state.process_starts.add(record, executed, self._context.streams)

    def _signal(self, record: trace_format.Signal) -> None:
        self._flows.add_signal(record.image, record.to, asks=record.signal == 0)

    def _environment(self, record: trace_format.Variables) -> None:
        entries = (entry.decode(errors="replace").partition("=") for entry in record.entries)
        variables = {name: value for name, _, value in entries if name}
        redactor = self._context.redactor
        redactor.learn(variables)
        masked = self._state.variables[record.number] = redactor.environment(variables)
        self._state.seals[record.number] = redactor.seals(variables, masked)

    def _exit(self, record: trace_format.Exit) -> None:
        image = self._final_image.get(record.image, record.image)
        self._processes[image].exit = record
        self._versions.end_process(image, record.at)

    def _open(self, record: trace_format.Open) -> None:
        path = record.real or normalize_path(record.path)
        if record.image == _NO_IMAGE or self._observations.is_ignored(path):
            return
        for observation in self._observations.observe_links(record.path, record.real):
            self._inputs_of_process[record.image].looked.setdefault(observation, record.at)
        if record.file_stat and stat.S_ISFIFO(record.file_stat.mode):
            self._flows.add_pipe_end(record.image, path, _access_bits(record.flags))
        else:
            self._changes.open_for_writing(record, path)

    def _read_open(self, record: trace_format.ReadOpen) -> None:
        image, at, what = record.image, record.at, record.what
        opened, inputs = self._observations.open_result(what), self._inputs_of_process[image]
        for observation in opened.looked:
            inputs.looked.setdefault(observation, at)
        if opened.used == "exec":
            self._state.process_starts.set_program(image, what, self._processes[image].exec)
        if opened.used:
            observed = self._versions.read(opened.path, what.file_stat, at=at)
            observed.read = True
            inputs.used.setdefault((observed, opened.used), at)
        elif opened.pipe:
            self._flows.add_pipe_end(image, opened.path, _access_bits(what.flags))
        elif opened.listed and what.file_stat:
            self._listings.add(Listing(image, opened.path, what.file_stat, record.seq, at))

    def _seen(self, record: trace_format.Seen) -> None:
        at, observations_of_look = record.at, self._observations.observations_of_look
        add = self._inputs_of_process[record.image].looked.setdefault
        for observation in chain.from_iterable(
            map(observations_of_look.__getitem__, record.looked)
        ):
            add(observation, at)

    def _descriptor(self, record: trace_format.Descriptor) -> None:
        image, name, file_stat, at = record.image, record.name, record.file_stat, record.at
        process = self._processes[image]
        stream = self._context.streams.get(name)
        if stream is not None:
            self._state.streams.setdefault((image, stream, record.way), at)
        elif name.startswith(b"pipe:"):
            self._flows.add_pipe_end(image, name, record.way)
        elif name.startswith(b"socket:"):
            if record.fd <= 2 and process.parent:
                self._flows.add_shared_socket(image, process.parent)
        elif file_stat and stat.S_ISREG(file_stat.mode) and not self._observations.is_ignored(name):
            if record.way & READS:
                observed = self._versions.read(name, file_stat, at=at)
                opened = self._inputs_of_process[image].has_opened(observed)
                if not opened and observed.maker != image:
                    self._state.record_use(image, observed, "inherited", at)
            if record.way & WRITES and is_file(name):
                self._versions.inherit(name, image, process.parent, file_stat, at=at)

    def _net(self, record: trace_format.Net) -> None:
        locator = peer_locator(record.address, record.socket)
        if locator is None:
            return
        if record.what == b"bind":
            self._flows.add_server(record.image, locator)
        else:
            self._flows.add_client(record.image, locator)
            self._state.peers.setdefault((record.image, locator, "connect"), record.at)

    def _fetch(self, record: trace_format.Fetch) -> None:
        url = Locator(self._context.redactor.url(record.url.decode(errors="replace")))
        self._state.peers.setdefault((record.image, url, "fetch"), record.at)

    def _hidden(self, record: trace_format.Hidden) -> None:
        what, why = record.what.decode(), record.why.decode()
        self._state.gaps.append((record.image, what, why, record.path, record.at))


def _access_bits(flags: int) -> int:
    return {os.O_RDONLY: READS, os.O_WRONLY: WRITES}.get(flags & os.O_ACCMODE, READS | WRITES)

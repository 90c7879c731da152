"""Replay a reused subtree of processes into the record of the execution that skipped it.

When an earlier execution's processes stand for a program that was not started again, the record is
still complete: it contains those processes and what they used, generated, looked at and removed,
each with the process it stands for. Versions that came from outside the subtree are the ones that
are there now; versions generated inside are new ones with the recorded content.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from clew.documents.ids import Locator, Uid
from clew.prov.event_numbers import MOVES
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.process_start import STREAMS
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.trace_state import ProcessInputs, TraceContext, TracedProcess, TraceState
from clew.witness.syscalls.version_tracker import KnownVersion, ObservedVersion

_FIRST_IMAGE = 1 << 40
"""Replayed processes get image numbers above this, which no trace reaches."""


class ReusedProcess(Struct, frozen=True):
    """A process of the earlier execution."""

    uid: Uid
    parent: Uid | None
    """The uid of its parent in the subtree; None: it is the program that was not started."""
    pid: int
    started: int
    ended: int | None
    exe: str | None
    cwd: str | None
    command: tuple[str, ...]
    variables: dict[str, str]
    start_facet: dict[str, Any] | None
    """Its facet `begun`."""
    status: int | None
    signal: int | None


class ReusedVersion(NamedTuple):
    """A version of the subtree. One without makers exists already, in the state `file_stat`."""

    path: bytes
    file_stat: FileStat | None
    known: KnownVersion | None = None
    generated_at: int = 0
    makers: Mapping[Uid, str] = {}
    base: int | None = None
    opened: FileStat | None = None
    """The file's state when the program inherited it open; its opener started the version."""


class ReusedAction(NamedTuple):
    """An action of a process. `words` hold, by kind: how the version was used or removed; the
    kind, locator and answer of a look; a stream and its access bits; the informing process and
    the means."""

    at: int
    order: int
    kind: Literal["used", "gone", "looked", "stream", "informed"]
    process: Uid
    version: int | None = None
    words: tuple[str, ...] = ()


class ReusedSubtree(Struct, frozen=True):
    """One program that was not started: its processes (itself first), versions and actions."""

    processes: list[ReusedProcess]
    versions: dict[int, ReusedVersion]
    actions: list[ReusedAction]
    held: list[list[Any]]
    """The descriptors that it would have been started with this time."""
    standing: str | None
    printed: dict[str, int]
    """How many bytes it wrote to each stream."""

    @property
    def root(self) -> ReusedProcess:
        return self.processes[0]


class SubtreeReplayer:
    """Adds reused subtrees to the state of one execution."""

    def __init__(self, context: TraceContext, state: TraceState) -> None:
        self._context = context
        self._state = state
        self._last_image = _FIRST_IMAGE
        self._last_variables = 0

    def replay(self, subtree: ReusedSubtree, record: trace_format.Reused) -> int:
        """Add what the subtree did, as done by the process of `record`.

        Returns the last image of that process: the exit of the process belongs to it.
        """
        return _Replay(self, subtree, record).replay()

    def new_image(self) -> int:
        self._last_image += 1
        return self._last_image

    def add_variables(self, variables: dict[str, str]) -> int:
        """Add a set of variables; its number is negative, as the trace counts its own from 1."""
        self._last_variables -= 1
        self._state.variables[self._last_variables] = variables
        return self._last_variables


class _Replay:
    def __init__(
        self, replayer: SubtreeReplayer, subtree: ReusedSubtree, record: trace_format.Reused
    ) -> None:
        self._replayer = replayer
        self._context, self._state = replayer._context, replayer._state
        self._subtree = subtree
        self._record = record
        times = {action.at for action in subtree.actions}
        for process in subtree.processes:
            times |= {process.started, process.ended or process.started}
            times |= {process.start_facet["at"]} if process.start_facet else set()
        times |= {version.generated_at for version in subtree.versions.values() if version.makers}
        self._times = sorted(times)
        self._processes = {process.uid: process for process in subtree.processes}
        self._images: dict[str, int] = {}
        self._stems: dict[str, str] = {}
        self._observed: dict[int, ObservedVersion] = {}

    def _at(self, at: int) -> int:
        """Map a recorded time to one just before `record`, so that the order stays the same."""
        return self._record.at - len(self._times) + bisect_left(self._times, at) - 1

    def replay(self) -> int:
        root = self._subtree.root
        timeline: list[tuple[int, int, Callable[[], None]]] = []
        for process in self._subtree.processes:
            timeline.append((process.started, 0, partial(self._start, process)))
            if process.ended is not None and process is not root:
                timeline.append((process.ended, 9, partial(self._end, process)))
        for key, version in self._subtree.versions.items():
            if version.makers:
                timeline.append((version.generated_at, 3, partial(self._generate, key, version)))
        for action in self._subtree.actions:
            timeline.append((action.at, action.order, partial(self._apply, action)))
        self._start(root)
        for _, _, apply in sorted(timeline, key=lambda entry: entry[:2]):
            apply()
        return self._final_image()

    def _final_image(self) -> int:
        """The image of the last program that the root process executed."""
        root = self._subtree.root
        stem = root.uid.rpartition("-")[0]
        images = [p for p in self._subtree.processes if p.uid.rpartition("-")[0] == stem]
        return self._images[max(images, key=lambda process: process.started).uid]

    # -- processes

    def _image(self, uid: Uid) -> int:
        if uid not in self._images:
            self._start(self._processes[uid])
        return self._images[uid]

    def _start(self, process: ReusedProcess) -> None:
        if process.uid in self._images:
            return
        at = self._at(process.started)
        if process.parent is None:
            image = self._record.image
            traced = self._state.processes[image]
        else:
            image = self._replayer.new_image()
            parent = self._image(process.parent)
            number = len(self._state.processes) + 1
            traced = TracedProcess(self._uid(process), number, parent, process.pid, at)
            self._state.processes[image] = traced
            self._state.inputs_of_process[image] = ProcessInputs()
            self._state.versions.add_process(image, parent)
        self._images[process.uid] = image
        traced.reused = process.uid
        if process.exe is not None:
            traced.exec = self._exec(process, image, at)
        if process.start_facet is not None:
            self._state.process_starts.facets[image] = self._start_facet(process)

    def _uid(self, process: ReusedProcess) -> Uid:
        """A new uid, derived from that of the process that was not started. Images of the same
        process share the stem and differ in the number at the end."""
        root = self._subtree.root
        stem, _, ordinal = process.uid.rpartition("-")
        new_stem, _, number = self._state.processes[self._record.image].uid.rpartition("-")
        root_stem, _, first = root.uid.rpartition("-")
        if stem == root_stem:
            return Uid(f"{new_stem}-{int(number) + int(ordinal) - int(first)}")
        child_stem = self._stems.setdefault(stem, f"{new_stem}-{number}.{len(self._stems) + 1}")
        return Uid(f"{child_stem}-{ordinal}")

    def _exec(self, process: ReusedProcess, image: int, at: int) -> trace_format.Exec:
        return trace_format.Exec(
            seq=self._record.seq,
            at=at,
            image=image,
            previous=image,
            pid=process.pid,
            exe=os.fsencode(process.exe or ""),
            given=os.fsencode(process.exe or ""),
            arguments=[word.encode(errors="surrogateescape") for word in process.command],
            variables=self._replayer.add_variables(process.variables),
            cwd=os.fsencode(process.cwd or ""),
        )

    def _start_facet(self, process: ReusedProcess) -> dict[str, Any]:
        begun = dict(process.start_facet or {})
        begun["at"] = self._at(begun["at"])
        if process.parent is None:
            begun["held"] = self._subtree.held
            begun.pop("standing", None)
            if self._subtree.standing is not None:
                begun["standing"] = self._subtree.standing
        if "output" in begun:
            begun["output"] = self._output(begun["output"])
        return begun

    def _output(self, output: dict[str, Any]) -> dict[str, Any]:
        """The output ranges, moved to where the output is now; None where other processes wrote in
        between."""
        moved = dict(output)
        first = (self._subtree.root.start_facet or {}).get("output", {})
        for name in STREAMS:
            bounds, origin = output.get(name), first.get(name)
            if name not in output:
                continue
            since = getattr(self._record, f"{name}_before")
            until = getattr(self._record, f"{name}_after")
            exclusive = since >= 0 and until - since == self._subtree.printed.get(name, 0)
            moved[name] = (
                [offset - origin[0] + since for offset in bounds]
                if exclusive and bounds and origin
                else None
            )
        return moved

    def _end(self, process: ReusedProcess) -> None:
        image = self._images[process.uid]
        at = self._at(process.ended or process.started)
        if process.status is not None or process.signal is not None:
            self._state.processes[image].exit = trace_format.Exit(
                seq=self._record.seq,
                at=at,
                image=image,
                status=-1 if process.status is None else process.status,
                signal=process.signal or 0,
                user=0,
                system=0,
                memory=0,
            )
        self._state.versions.end_process(image, at)

    # -- actions

    def _generate(self, key: int, version: ReusedVersion) -> None:
        makers = {self._image(uid): how for uid, how in version.makers.items()}
        at, tracker = self._at(version.generated_at), self._state.versions
        if version.opened is not None:
            image = self._record.image
            parent = self._state.processes[image].parent
            observed = tracker.inherit(version.path, image, parent, version.opened, at=at)
            observed.makers |= {
                image: how for image, how in makers.items() if image not in observed.makers
            }
            observed.file_stat = observed.inherited = version.file_stat
        else:
            replaced = tracker.current(version.path)
            if replaced is not None and "rename" in makers.values():
                replaced.gone = True  # a recorded replacement is an action of its own
                mover = next(image for image, how in makers.items() if how == "rename")
                self._state.invalidated.append((mover, replaced, "replace", at))
            observed = tracker.add(
                version.path, at=at, maker=next(iter(makers)), file_stat=version.file_stat
            )
            observed.makers = makers
        observed.known = version.known
        if version.base is not None:
            observed.base = self._observe(version.base, observed.at, read=True)
            observed.base.is_base = True
        self._observed[key] = observed

    def _observe(self, key: int, at: int, *, read: bool) -> ObservedVersion:
        """The version that `key` stands for: the one in the recorded state if it was read, else
        the current one."""
        observed = self._observed.get(key)
        if observed is None:
            version, tracker = self._subtree.versions[key], self._state.versions
            current = None if read else tracker.current(version.path)
            observed = self._observed[key] = current or tracker.read(
                version.path, version.file_stat, at=at
            )
        return observed

    def _apply(self, action: ReusedAction) -> None:
        at = self._at(action.at)
        image = self._image(action.process)
        inputs = self._state.inputs_of_process[image]
        if action.kind == "looked":
            kind, path, answer = action.words
            inputs.looked.setdefault((kind, Locator(path), answer), at)
        elif action.kind == "stream":
            name, access = action.words
            self._state.streams.setdefault((image, name, int(access)), at)
        elif action.kind == "informed":
            by, via = action.words
            self._state.flows.add(image, self._image(Uid(by)), via)
        elif action.version is not None:
            read = action.kind == "used" and action.words[0] not in MOVES
            observed = self._observe(action.version, at, read=read)
            if action.kind == "used":
                observed.read = observed.read or read
                inputs.used.setdefault((observed, action.words[0]), at)
            else:
                observed.gone = True
                self._state.invalidated.append((image, observed, action.words[0], at))

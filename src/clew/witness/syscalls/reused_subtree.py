"""Telling again what was not done again.

Where an earlier run's processes stand for a program that was not started, the record is complete
all the same: the processes, what they used, made, looked at and removed are told as if they had
run, each with the process it stands for. Versions from outside are those that are there now;
those made inside are new, with the content they had.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from clew.prov.event_kinds import MOVES
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.process_start import STREAMS
from clew.witness.syscalls.trace_format import Facts
from clew.witness.syscalls.trace_state import ProcessFacts, TraceContext, TracedProcess, TraceState
from clew.witness.syscalls.version_tracker import KnownVersion, ObservedVersion

_FIRST = 1 << 40
"""Images are numbered from here: no tracer gets that far."""


class ReusedProcess(Struct, frozen=True):
    """A process to be told."""

    uid: str
    """The one that did it."""
    parent: str | None
    """Its parent among the actors; None: it is the program that was not started."""
    pid: int
    began: int
    ended: int | None
    exe: str | None
    cwd: str | None
    command: tuple[str, ...]
    variables: dict[str, str]
    begun: dict[str, Any] | None
    status: int | None
    signal: int | None


class ReusedVersion(NamedTuple):
    """A version to be told. Without makers it is there already, in the state `facts`."""

    path: bytes
    facts: Facts | None
    told: KnownVersion | None = None
    made: int = 0
    makers: Mapping[str, str] = {}
    carries: int | None = None
    opened: Facts | None = None
    """It was handed, open and in this state: who opened it began the version."""


class ReusedAction(NamedTuple):
    """What an actor did: to a thing, or (a look, a stream, a word to another) as words say."""

    at: int
    order: int
    kind: Literal["used", "gone", "looked", "stream", "informed"]
    actor: str
    thing: int | None = None
    words: tuple[str, ...] = ()


class ReusedSubtree(Struct, frozen=True):
    """One program that was not started: its actors (itself first), things and steps."""

    actors: list[ReusedProcess]
    things: dict[int, ReusedVersion]
    steps: list[ReusedAction]
    held: list[list[Any]]
    """What it was to be started with this time."""
    standing: str | None
    printed: dict[str, int]
    """How many bytes of each stream were its own."""

    @property
    def root(self) -> ReusedProcess:
        return self.actors[0]


class SubtreeReplayer:
    """Tells into one story."""

    def __init__(self, scene: TraceContext, story: TraceState) -> None:
        self._scene = scene
        self._story = story
        self._next = _FIRST
        self._numbers = 0

    def tell(self, retold: ReusedSubtree, record: trace_format.Reused) -> int:
        """Tell it as done by the process of `record`; the image that its end is the end of."""
        return _Replay(self, retold, record).tell()

    def image(self) -> int:
        self._next += 1
        return self._next

    def variables(self, own: dict[str, str]) -> int:
        """A number for these variables; those of the trace count from 1."""
        self._numbers -= 1
        self._story.variables[self._numbers] = own
        return self._numbers


class _Replay:
    def __init__(
        self, teller: SubtreeReplayer, retold: ReusedSubtree, record: trace_format.Reused
    ) -> None:
        self._teller = teller
        self._scene, self._story = teller._scene, teller._story
        self._retold = retold
        self._record = record
        times = {step.at for step in retold.steps}
        for actor in retold.actors:
            times |= {actor.began, actor.ended or actor.began}
            times |= {actor.begun["at"]} if actor.begun else set()
        times |= {thing.made for thing in retold.things.values() if thing.makers}
        self._times = sorted(times)
        self._actors = {actor.uid: actor for actor in retold.actors}
        self._images: dict[str, int] = {}
        self._stems: dict[str, str] = {}
        self._mets: dict[int, ObservedVersion] = {}

    def _at(self, at: int) -> int:
        """The order is kept; all of it lies before the moment of the record."""
        return self._record.at - len(self._times) + bisect_left(self._times, at) - 1

    def tell(self) -> int:
        root = self._retold.root
        happenings: list[tuple[int, int, Callable[[], None]]] = []
        for actor in self._retold.actors:
            happenings.append((actor.began, 0, partial(self._born, actor)))
            if actor.ended is not None and actor is not root:
                happenings.append((actor.ended, 9, partial(self._ended, actor)))
        for key, thing in self._retold.things.items():
            if thing.makers:
                happenings.append((thing.made, 3, partial(self._made, key, thing)))
        for step in self._retold.steps:
            happenings.append((step.at, step.order, partial(self._step, step)))
        self._born(root)
        for _, _, happen in sorted(happenings, key=lambda one: one[:2]):
            happen()
        return self._last()

    def _last(self) -> int:
        """What the program had become by its end."""
        root = self._retold.root
        stem = root.uid.rpartition("-")[0]
        line = [a for a in self._retold.actors if a.uid.rpartition("-")[0] == stem]
        return self._images[max(line, key=lambda actor: actor.began).uid]

    # -- processes

    def _image(self, uid: str) -> int:
        if uid not in self._images:
            self._born(self._actors[uid])
        return self._images[uid]

    def _born(self, actor: ReusedProcess) -> None:
        if actor.uid in self._images:
            return
        at = self._at(actor.began)
        if actor.parent is None:
            image = self._record.image
            process = self._story.processes[image]
        else:
            image = self._teller.image()
            parent = self._image(actor.parent)
            number = len(self._story.processes) + 1
            process = TracedProcess(self._uid(actor), number, parent, actor.pid, at)
            self._story.processes[image] = process
            self._story.tales[image] = ProcessFacts()
            self._story.paths.born(image, parent)
        self._images[actor.uid] = image
        process.reused = actor.uid
        if actor.exe is not None:
            process.exec = self._exec(actor, image, at)
        if actor.begun is not None:
            self._story.beginnings.begun[image] = self._begun(actor)

    def _uid(self, actor: ReusedProcess) -> str:
        """Named after the process that was not started; programs that one process became have one
        name, and numbers."""
        root = self._retold.root
        stem, _, ordinal = actor.uid.rpartition("-")
        mine, _, number = self._story.processes[self._record.image].uid.rpartition("-")
        first, _, since = root.uid.rpartition("-")
        if stem == first:
            return f"{mine}-{int(number) + int(ordinal) - int(since)}"
        known = self._stems.setdefault(stem, f"{mine}-{number}.{len(self._stems) + 1}")
        return f"{known}-{ordinal}"

    def _exec(self, actor: ReusedProcess, image: int, at: int) -> trace_format.Exec:
        return trace_format.Exec(
            seq=self._record.seq,
            at=at,
            image=image,
            previous=image,
            pid=actor.pid,
            exe=os.fsencode(actor.exe or ""),
            given=os.fsencode(actor.exe or ""),
            arguments=[word.encode(errors="surrogateescape") for word in actor.command],
            variables=self._teller.variables(actor.variables),
            cwd=os.fsencode(actor.cwd or ""),
        )

    def _begun(self, actor: ReusedProcess) -> dict[str, Any]:
        begun = dict(actor.begun or {})
        begun["at"] = self._at(begun["at"])
        if actor.parent is None:
            begun["held"] = self._retold.held
            begun.pop("standing", None)
            if self._retold.standing is not None:
                begun["standing"] = self._retold.standing
        if "output" in begun:
            begun["output"] = self._output(begun["output"])
        return begun

    def _output(self, output: dict[str, Any]) -> dict[str, Any]:
        """The same stretches where the output is now; unknown where others wrote into them."""
        moved = dict(output)
        first = (self._retold.root.begun or {}).get("output", {})
        for name in STREAMS:
            stretch, origin = output.get(name), first.get(name)
            if name not in output:
                continue
            since = getattr(self._record, f"{name}_before")
            until = getattr(self._record, f"{name}_after")
            alone = since >= 0 and until - since == self._retold.printed.get(name, 0)
            moved[name] = (
                [place - origin[0] + since for place in stretch]
                if alone and stretch and origin
                else None
            )
        return moved

    def _ended(self, actor: ReusedProcess) -> None:
        image = self._images[actor.uid]
        at = self._at(actor.ended or actor.began)
        if actor.status is not None or actor.signal is not None:
            self._story.processes[image].exit = trace_format.Exit(
                seq=self._record.seq,
                at=at,
                image=image,
                status=-1 if actor.status is None else actor.status,
                signal=actor.signal or 0,
                user=0,
                system=0,
                memory=0,
            )
        self._story.paths.ended(image, at)

    # -- what they did

    def _made(self, key: int, thing: ReusedVersion) -> None:
        makers = {self._image(uid): how for uid, how in thing.makers.items()}
        at, paths = self._at(thing.made), self._story.paths
        if thing.opened is not None:
            image = self._record.image
            parent = self._story.processes[image].parent
            met = paths.inherit(thing.path, image, parent, thing.opened, at=at)
            met.makers |= {image: how for image, how in makers.items() if image not in met.makers}
            met.facts = met.inherited = thing.facts
        else:
            replaced = paths.current(thing.path)
            if replaced is not None and "rename" in makers.values():
                replaced.gone = True  # nothing was there then, or else that is told
                mover = next(image for image, how in makers.items() if how == "rename")
                self._story.invalidated.append((mover, replaced, "replace", at))
            met = paths.add(thing.path, at=at, maker=next(iter(makers)), facts=thing.facts)
            met.makers = makers
        met.told = thing.told
        if thing.carries is not None:
            met.carries = self._met(thing.carries, met.at, read=True)
            met.carries.carried = True
        self._mets[key] = met

    def _met(self, key: int, at: int, *, read: bool) -> ObservedVersion:
        """What is there: as it was read, or else whatever it is."""
        met = self._mets.get(key)
        if met is None:
            thing, paths = self._retold.things[key], self._story.paths
            there = None if read else paths.current(thing.path)
            met = self._mets[key] = there or paths.read(thing.path, thing.facts, at=at)
        return met

    def _step(self, step: ReusedAction) -> None:
        at = self._at(step.at)
        image = self._image(step.actor)
        tale = self._story.tales[image]
        if step.kind == "looked":
            kind, path, answer = step.words
            tale.looked.setdefault((kind, path, answer), at)
        elif step.kind == "stream":
            name, way = step.words
            self._story.streams.setdefault((image, name, int(way)), at)
        elif step.kind == "informed":
            by, via = step.words
            self._story.flows.told(image, self._image(by), via)
        elif step.thing is not None:
            read = step.kind == "used" and step.words[0] not in MOVES
            met = self._met(step.thing, at, read=read)
            if step.kind == "used":
                met.read = met.read or read
                tale.used.setdefault((met, step.words[0]), at)
            else:
                met.gone = True
                self._story.invalidated.append((image, met, step.words[0], at))

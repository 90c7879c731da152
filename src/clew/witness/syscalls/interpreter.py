"""The system-call witness: from what clew-trace saw to events.

The records are put in their order and told as a story: which process met which version of
what. Nothing is claimed that was not seen; what could not be seen becomes a gap.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from clew.prov.event_kinds import MOVES
from clew.witness.syscalls import trace_format
from clew.witness.syscalls.content_capture import ContentCapture, is_file
from clew.witness.syscalls.data_flows import peer_locator
from clew.witness.syscalls.directory_changes import DirectoryChanges
from clew.witness.syscalls.directory_listings import DirectoryListings, Listing
from clew.witness.syscalls.observations import Observations, normalize_path
from clew.witness.syscalls.symlinks import SymlinkResolver
from clew.witness.syscalls.trace_format import AnyRecord, Facts
from clew.witness.syscalls.trace_state import ProcessFacts, TraceContext, TracedProcess, TraceState
from clew.witness.syscalls.version_tracker import ObservedVersion

if TYPE_CHECKING:
    from clew.witness.syscalls.reused_subtree import ReusedSubtree, SubtreeReplayer


def interpret(
    scene: TraceContext,
    trace: Sequence[AnyRecord],
    contents: ContentCapture,
    retold: Mapping[int, ReusedSubtree] | None = None,
) -> TraceState:
    """The story of these records, which are in their order; what it leaves is stored. `retold`:
    what programs did that were not started again, by the tokens of the records."""
    story = TraceState()
    narrator = Interpreter(scene, story, contents, SymlinkResolver(contents.files.readlink))
    narrator.retold = retold or {}
    narrator.tell(trace)
    contents.settle(path for path in story.left() if is_file(path))
    return story


_NOBODY = 0
"""The image of what is described before anybody is told to have seen it."""


class Interpreter:
    """Tells the records of one execution, given in their order."""

    def __init__(
        self,
        scene: TraceContext,
        story: TraceState,
        contents: ContentCapture,
        links: SymlinkResolver,
    ) -> None:
        self._scene = scene
        self._sights = Observations(scene, story, links)
        self._story = story
        self._paths = story.paths
        self._flows = story.flows
        self._processes = story.processes
        self._tales = story.tales
        self._listings = DirectoryListings(contents)
        self._deeds = DirectoryChanges()
        self.retold: Mapping[int, ReusedSubtree] = {}
        self._retelling: SubtreeReplayer | None = None
        self._became: dict[int, int] = {}

    # -- listening

    def tell(self, trace: Sequence[AnyRecord]) -> None:
        tellers: dict[type, Callable[..., None]] = {
            trace_format.Spawn: self._spawn,
            trace_format.Exec: self._exec,
            trace_format.Variables: self._environment,
            trace_format.Exit: self._exit,
            trace_format.Open: self._open,
            trace_format.Sighting: self._sighting,
            trace_format.Seen: self._seen,
            trace_format.Change: self._change,
            trace_format.Descriptor: self._descriptor,
            trace_format.Net: self._net,
            trace_format.Hidden: self._hidden,
            trace_format.Fetch: self._fetch,
            trace_format.Held: self._held,
            trace_format.Mark: self._story.beginnings.mark,
            trace_format.Place: self._story.beginnings.place,
            trace_format.Signal: self._signal,
            trace_format.Reused: self._reused,
        }
        for record in trace:
            if isinstance(record, trace_format.Look):
                self._sights.describe(record)
        for moment in trace_format.unfolded(trace):
            teller = tellers.get(type(moment))
            if teller is not None:
                teller(moment)
        for tale in self._tales.values():
            tale.end()
        for listing, names in self._listings.settled():
            self._looked(listing.image, "listing", listing.path, names, listing.at)

    def _spawn(self, record: trace_format.Spawn) -> None:
        number = len(self._processes) + 1
        uid = f"{self._scene.boot}-{record.pid}-{record.started}-0"
        self._processes[record.image] = TracedProcess(
            uid, number, record.parent, record.pid, record.at
        )
        self._tales[record.image] = ProcessFacts()
        self._paths.born(record.image, record.parent)

    def _exec(self, record: trace_format.Exec) -> None:
        if record.image == record.previous:
            self._processes[record.image].exec = record
            self._tales[record.image].begin_anew()
            self._paths.seal(record.image)
        else:
            self._succeed(record, record)

    def _succeed(
        self, record: trace_format.Exec | trace_format.Reused, run: trace_format.Exec | None
    ) -> None:
        """A process becomes another program."""
        before = self._processes[record.previous]
        self._paths.born(record.image, record.previous)
        self._paths.ended(record.previous, record.at)
        stem, _, ordinal = before.uid.rpartition("-")
        self._processes[record.image] = TracedProcess(
            f"{stem}-{int(ordinal) + 1}",
            len(self._processes) + 1,
            record.previous,
            record.pid,
            record.at,
            exec=run,
        )
        self._tales[record.image] = ProcessFacts()

    def _reused(self, record: trace_format.Reused) -> None:
        """A program that was not started: what it did before is told as if it had been."""
        if record.image != record.previous:
            self._succeed(record, None)
        else:
            self._tales[record.image].begin_anew()
            self._paths.seal(record.image)
        retold = self.retold.get(record.token)
        if retold is not None:
            if self._retelling is None:
                from clew.witness.syscalls.reused_subtree import SubtreeReplayer

                self._retelling = SubtreeReplayer(self._scene, self._story)
            self._became[record.image] = self._retelling.tell(retold, record)

    def _held(self, record: trace_format.Held) -> None:
        run = self._processes[record.image].exec
        self._story.beginnings.held(record, run, self._scene.streams)

    def _signal(self, record: trace_format.Signal) -> None:
        self._flows.signalled(record.image, record.to, asks=record.signal == 0)

    def _environment(self, record: trace_format.Variables) -> None:
        entries = (entry.decode(errors="replace").partition("=") for entry in record.entries)
        own = {name: value for name, _, value in entries if name}
        self._scene.redactor.learn(own)
        self._story.variables[record.number] = self._scene.redactor.environment(own)
        self._story.seals[record.number] = self._scene.redactor.seals(own)

    def _exit(self, record: trace_format.Exit) -> None:
        image = self._became.get(record.image, record.image)
        self._processes[image].exit = record
        self._paths.ended(image, record.at)

    def _open(self, record: trace_format.Open) -> None:
        path = record.real or normalize_path(record.path)
        if record.image == _NOBODY or self._sights.ignored(path):
            return  # described for those who will be told to have opened it
        for fact in self._sights.links(record.path, record.real):
            self._tales[record.image].looked.setdefault(fact, record.at)
        if record.facts and stat.S_ISFIFO(record.facts.mode):
            self._flows.holds(record.image, path, _access_bits(record.flags))
        else:
            self._write(record, path)

    def _sighting(self, record: trace_format.Sighting) -> None:
        image, at, what = record.image, record.at, record.what
        opened, tale = self._sights.opened(what), self._tales[image]
        for fact in opened.looked:
            tale.looked.setdefault(fact, at)
        if opened.used == "exec":
            self._story.beginnings.loaded(image, what, self._processes[image].exec)
        if opened.used:
            met = self._paths.read(opened.path, what.facts, at=at)
            met.read = True
            tale.used.setdefault((met, opened.used), at)
        elif opened.pipe:
            self._flows.holds(image, opened.path, _access_bits(what.flags))
        elif opened.listed and what.facts:
            self._listings.listed(Listing(image, opened.path, what.facts, record.seq, at))

    def _seen(self, record: trace_format.Seen) -> None:
        told, looked, at = self._sights.looked, self._tales[record.image].looked, record.at
        for number in record.looked:
            for fact in told[number]:
                looked.setdefault(fact, at)

    def _write(self, record: trace_format.Open, path: bytes) -> None:
        image, at, before = record.image, record.at, record.before
        if record.flags & os.O_CREAT:
            self._listings.changed(path, record.seq, existed=before is not None)
        old: ObservedVersion | None = None
        if before is None or record.flags & os.O_EXCL:
            if record.flags & os.O_CREAT:
                self._looked(image, "absent", path, "ENOENT", at)
        elif record.flags & os.O_TRUNC:
            self._looked(image, "present", path, f"{before.mode:o}", at)
            replaced = self._paths.current(path)
            if replaced is not None and not (replaced.maker == image and not replaced.read):
                self._invalidate(image, replaced, "replace", at)
        elif before.size or record.flags & os.O_ACCMODE == os.O_RDWR:
            old = self._paths.read(path, before, at=at)
            if record.flags & os.O_ACCMODE == os.O_RDWR and (old.maker != image or old.read):
                self._use(image, old, "open", at)
        else:  # it was there, and empty
            times = f"{before.mode:o} {before.size} {before.mtime}"
            self._looked(image, "times", path, times, at)
        met = self._paths.write(path, image, at=at, how="write", facts=record.facts)
        self._carry(met, old)
        if record.flags & os.O_TMPFILE == os.O_TMPFILE:
            self._invalidate(image, met, "delete", at)  # it has no name, unless it gets one

    def _change(self, record: trace_format.Change) -> None:
        image, path, at = record.image, record.path, record.at
        if self._sights.ignored(path):
            return
        self._renamed(record)
        for kind, where, answer in self._deeds.of(record):
            self._looked(image, kind, where, answer, at)
        if record.what in (b"rename", b"link", b"exchange") and record.path2:
            self._move(record, record.path2)
        elif record.what == b"delete":
            old = self._paths.current(path)
            if record.before and not stat.S_ISDIR(record.before.mode):
                old = old or self._paths.read(path, record.before, at=at)
                self._invalidate(image, old, "delete", at)
        elif record.what == b"symlink":
            self._looked(image, "absent", path, "ENOENT", at)
            met = self._paths.write(path, image, at=at, how="symlink", facts=record.after)
            met.facts = record.after
        elif record.what == b"metadata" and record.before and stat.S_ISREG(record.before.mode):
            self._touch(record)
        elif record.what == b"map" and record.before:
            self._paths.mapped(record.before, image)
        elif record.what == b"truncate":
            kept = record.before and record.before.size and record.after and record.after.size
            old = self._paths.read(path, record.before, at=at) if kept else None
            if record.before and not kept:
                self._looked(image, "present", path, f"{record.before.mode:o}", at)
            self._carry(self._paths.write(path, image, at=at, how="write", facts=record.after), old)

    def _renamed(self, record: trace_format.Change) -> None:
        """Names that came and went, for those who list their folders."""
        if record.what in (b"rename", b"delete"):
            self._listings.changed(record.path, record.seq, existed=True)
        elif record.what in (b"symlink", b"folder", b"node"):
            self._listings.changed(record.path, record.seq, existed=False)
        if record.what in (b"rename", b"link") and record.path2:
            known = self._paths.current(record.path2) is not None
            self._listings.changed(record.path2, record.seq, existed=known)

    def _touch(self, record: trace_format.Change) -> None:
        """New times or permissions are a new version, unless it is one's own work in progress."""
        old = self._paths.current(record.path)
        if (
            old is not None
            and old.maker is not None
            and (old.maker == record.image or not old.read)
        ):
            old.facts = record.after
            old.makers.setdefault(record.image, "metadata")
            return
        old = self._paths.read(record.path, record.before, at=record.at)
        self._use(record.image, old, "metadata", record.at)
        met = self._paths.add(record.path, at=record.at, maker=record.image, facts=record.after)
        met.makers[record.image] = "metadata"

    def _move(self, record: trace_format.Change, to: bytes) -> None:
        if record.before and stat.S_ISDIR(record.before.mode):
            return  # what is in it is told file by file
        old = self._before(record.path, record.before, record.at)
        if record.what == b"exchange":
            other = self._before(to, record.after, record.at)
            self._move_one(record, to, record.path, other, record.after)
            self._move_one(record, record.path, to, old, record.before)
        elif old.gone and record.what == b"link":  # it had no name until now
            new = self._paths.add(to, at=record.at, maker=record.image, facts=record.after)
            new.makers |= old.makers | {record.image: "link"}
        else:
            self._move_one(record, record.path, to, old, record.after)

    def _before(self, path: bytes, facts: Facts | None, at: int) -> ObservedVersion:
        """The version that was at a path when its name was moved."""
        old = self._paths.current(path)
        if old is None or old.maker is None:
            return self._paths.read(path, facts, at=at)
        return old

    def _move_one(
        self,
        record: trace_format.Change,
        path: bytes,
        to: bytes,
        old: ObservedVersion,
        facts: Facts | None,
    ) -> None:
        image, at, how = record.image, record.at, record.what.decode()
        self._use(image, old, how, at)
        replaced = self._paths.current(to)
        if replaced is not None and record.what == b"rename":
            self._invalidate(image, replaced, "replace", at)
        new = self._paths.add(to, at=at, maker=image, facts=facts or old.facts)
        new.makers[image] = how
        if record.what == b"link":
            self._story.aliases.add((path, to))
        elif record.what == b"rename":
            self._invalidate(image, old, "rename", at)

    def _descriptor(self, record: trace_format.Descriptor) -> None:
        image, name, at = record.image, record.name, record.at
        process = self._processes[image]
        stream = self._scene.streams.get(name)
        if stream is not None:
            self._story.streams.setdefault((image, stream, record.way), at)
        elif name.startswith(b"pipe:"):
            self._flows.holds(image, name, record.way)
        elif name.startswith(b"socket:"):
            if record.fd <= 2 and process.parent:
                self._flows.shares_socket(image, process.parent)
        elif record.facts and stat.S_ISREG(record.facts.mode) and not self._sights.ignored(name):
            if record.way & 1:
                met = self._paths.read(name, record.facts, at=at)
                if not self._tales[image].opened(met) and met.maker != image:
                    self._use(image, met, "inherited", at)
            if record.way & 2:
                self._paths.inherit(name, image, process.parent, record.facts, at=at)

    def _net(self, record: trace_format.Net) -> None:
        locator = peer_locator(record.address, record.socket)
        if locator is None:
            return
        if record.what == b"bind":
            self._flows.bound(record.image, locator)
        else:
            self._flows.connected(record.image, locator)
            self._story.peers.setdefault((record.image, locator, "connect"), record.at)

    def _fetch(self, record: trace_format.Fetch) -> None:
        url = self._scene.redactor.url(record.url.decode(errors="replace"))
        self._story.peers.setdefault((record.image, url, "fetch"), record.at)

    def _hidden(self, record: trace_format.Hidden) -> None:
        what, why = record.what.decode(), record.why.decode()
        self._story.gaps.append((record.image, what, why, record.path, record.at))

    # -- small words

    def _carry(self, met: ObservedVersion, old: ObservedVersion | None) -> None:
        if old is not None and old is not met:
            met.carries = old
            old.carried = True

    def _use(self, image: int, met: ObservedVersion, how: str, at: int) -> None:
        if how not in MOVES:
            met.read = True
        self._tales[image].used.setdefault((met, how), at)

    def _invalidate(self, image: int, met: ObservedVersion, how: str, at: int) -> None:
        met.gone = True
        self._story.invalidated.append((image, met, how, at))

    def _looked(self, image: int, kind: str, path: bytes, answer: str, at: int) -> None:
        for fact in self._sights.fact(kind, path, answer):
            self._tales[image].looked.setdefault(fact, at)


def _access_bits(flags: int) -> int:
    return {os.O_RDONLY: 1, os.O_WRONLY: 2}.get(flags & os.O_ACCMODE, 3)

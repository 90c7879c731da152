"""From the story to events: processes, versions with their makers and content, edges, gaps."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from clew.prov.event_kinds import FIRST_WITNESSED
from clew.prov.events import (
    Alias,
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Looked,
    Started,
    Used,
    Version,
)
from clew.prov.locators import file_locator
from clew.prov.text import decode_text
from clew.store import Stored
from clew.witness.downloads.trace_origins import origins
from clew.witness.syscalls.content_capture import ContentCapture, KnownContent, is_file
from clew.witness.syscalls.trace_state import TraceContext, TracedProcess, TraceState
from clew.witness.syscalls.version_tracker import ObservedVersion, facts_of, key_of

Left = tuple[KnownContent, os.stat_result] | str
"""Content that is there at the end, or why there is none."""

_CHANGED_WHILE_OPEN = (
    "changed by somebody else while it was open: not all that was read may be this"
)
_READ_WHILE_MAPPED = (
    "read while a process could write it through memory: in which state is not known"
)


class EventBuilder:
    """Tells one story. `owners` names the package of each path that has one."""

    def __init__(
        self,
        scene: TraceContext,
        story: TraceState,
        contents: ContentCapture,
        owners: Mapping[bytes, str],
    ) -> None:
        self._scene = scene
        self._story = story
        self._contents = contents
        self._owners = owners
        self._origins = origins(story, scene.redactor)
        self._n = count(FIRST_WITNESSED)
        self._versions: dict[ObservedVersion, Version] = {}
        self.bytes = 0
        """Size of all content named."""

    def events(self) -> Iterator[AnyEvent]:
        yield from self._processes()
        self._left = self._look_at_what_is_left()
        for line in self._story.paths:
            for met in line:
                yield from self._version_events(met, last=met is line[-1])
        yield from self._tales()
        for image, met, how, at in self._story.invalidated:
            yield Invalidated(
                execution=self._scene.execution,
                n=next(self._n),
                at=at,
                activity=self._uid(image),
                version=self._version(met),
                how=how,
            )
        for a, b in sorted(self._story.aliases):
            yield Alias(
                execution=self._scene.execution,
                n=next(self._n),
                at=0,
                a=self._locator(a),
                b=self._locator(b),
            )
        yield from self._flows()
        for image, what, why, path, at in self._story.gaps:
            yield self._gap(self._uid(image), what, why, path, at)

    # -- names

    def _uid(self, image: int) -> str:
        return self._story.processes[image].uid

    def _locator(self, path: bytes) -> str:
        return file_locator(self._scene.machine, path)

    def _version(self, met: ObservedVersion) -> Version:
        found = self._versions.get(met)
        if found is None:
            maker = self._scene.execution if met.maker is None else self._uid(met.maker)
            found = Version(self._locator(met.path), maker, met.ordinal)
            self._versions[met] = found
        return found

    def _outside(self, locator: str) -> Version:
        return Version(locator, self._scene.execution, 1)

    # -- processes

    def _processes(self) -> Iterator[AnyEvent]:
        for process in self._story.processes.values():
            if process.exec:  # a secret that it was given may stand in an earlier one's words, too
                self._scene.redactor.learn_command([*map(decode_text, process.exec.arguments)])
        for image, process in self._story.processes.items():
            yield self._started(image, process)
            if process.exit is not None:
                yield self._ended(process)

    def _started(self, image: int, process: TracedProcess) -> Started:
        words = [decode_text(word) for word in self._story.command(image)]
        own = self._story.variables.get(process.exec.variables, {}) if process.exec else {}
        return Started(
            execution=self._scene.execution,
            n=next(self._n),
            at=process.at,
            activity=process.uid,
            kind="process",
            parent=self._uid(process.parent) if process.parent else self._scene.execution,
            number=process.number,
            pid=process.pid,
            command=self._scene.redactor.arguments(words).words,
            exe=decode_text(process.exec.exe) if process.exec else None,
            cwd=decode_text(process.exec.cwd) if process.exec else None,
            environment=_difference(self._scene.variables, own) if process.exec else {},
            facets=self._begun(image, process),
        )

    def _begun(self, image: int, process: TracedProcess) -> dict[str, Any]:
        facets: dict[str, Any] = {}
        begun = self._story.beginnings.facet(image)
        if begun is not None and process.exec is not None:
            seals = self._story.seals.get(process.exec.variables, {})
            other = {n: seal for n, seal in seals.items() if self._scene.sealed.get(n) != seal}
            facets["begun"] = {**begun, "sealed": other} if other else begun
        if process.reused is not None:
            facets["reused_from"] = process.reused
        return facets

    def _ended(self, process: TracedProcess) -> Ended:
        assert process.exit is not None
        end = process.exit
        return Ended(
            execution=self._scene.execution,
            n=next(self._n),
            at=end.at,
            activity=process.uid,
            status=end.status if end.status >= 0 else None,
            signal=end.signal or None,
            usage={
                "user_seconds": end.user / 1e6,
                "system_seconds": end.system / 1e6,
                "peak_bytes": end.memory * 1024.0,
            },
        )

    # -- versions

    def _look_at_what_is_left(self) -> dict[ObservedVersion, Left]:
        """The content of each file that the execution made and that is still there. All of it
        before any is told: what was moved is known by where it is now."""
        left: dict[ObservedVersion, Left] = {}
        for line in self._story.paths:
            met = line[-1]
            if met.maker is not None and not met.gone and is_file(met.path):
                left.update((self._left_of(met, self._contents.left(met.path)),))
        return left

    def _left_of(self, met: ObservedVersion, left: Left) -> tuple[ObservedVersion, Left]:
        """The version that is left: not what was read, if its makers went on after that; and
        not theirs at all, if it changed after they had ended."""
        if isinstance(left, str):
            return met, left
        now = left[1]
        if not met.blurred and met.facts is not None and met.facts[:4] == facts_of(now)[:4]:
            return met, left
        opener = () if met.opener is None else (met.opener,)  # it may have written after its child
        if self._story.paths.over((*met.makers, *opener), now.st_mtime_ns):
            return met, "changed by somebody else after it was written"
        if met.blurred or (met.read and met.facts is not None):
            met = self._story.paths.again(met, facts_of(now), at=max(met.at, now.st_mtime_ns))
        return met, left

    def _version_events(self, met: ObservedVersion, *, last: bool) -> Iterator[AnyEvent]:
        known: KnownContent | None = None
        mode, mtime, missing = 0, 0, ""
        left = self._left.get(met) if last else None
        if isinstance(left, str):
            missing = left
        elif left is not None:
            known, now = left
            mode, mtime = now.st_mode, now.st_mtime_ns
            _settle_opener(met, now)
        if met.told is not None and known is None:
            told = met.told
            known = KnownContent(Stored(told.digest, told.size), told.kept)
            mode, mtime, missing = told.mode, told.mtime, ""
        if met.blurred:
            missing = _READ_WHILE_MAPPED
        elif known is None and met.facts is not None and stat.S_ISREG(met.facts.mode):
            known = self._contents.known(met.facts)
            mode, mtime = met.facts.mode, met.facts.mtime
            needed = met.read or (met.carried and met.maker is None)
            if known is None and needed and is_file(met.path):
                missing = missing or self._contents.why_missing(met.facts)
        version = self._version(met)
        for image, how in met.makers.items():
            yield Generated(
                execution=self._scene.execution,
                n=next(self._n),
                at=met.at,
                activity=self._uid(image),
                version=version,
                how=how,
            )
            if met.carries is not None:
                yield Used(
                    execution=self._scene.execution,
                    n=next(self._n),
                    at=met.at,
                    activity=self._uid(image),
                    version=self._version(met.carries),
                    how="append",
                )
        if known is not None:
            source = self._origins.get(met.path) if last else None
            yield self._content(version, known, mode, mtime, self._owners.get(met.path), source)
            meanwhile = last and met.maker is None and met.read and self._changed_meanwhile(met)
            missing = _CHANGED_WHILE_OPEN if meanwhile else ""
        if missing and missing != "gone":
            yield self._gap(self._scene.execution, "content", missing, met.path, met.at)

    def _changed_meanwhile(self, met: ObservedVersion) -> bool:
        """Whether somebody else changed this input while a process that read it still ran: which
        bytes it met is then not known for sure."""
        if met.gone or met.facts is None or not stat.S_ISREG(met.facts.mode):
            return False
        try:
            found = self._contents.files.lstat(met.path)
        except OSError:
            return False
        if found.st_mtime_ns == met.facts.mtime and found.st_size == met.facts.size:
            return False
        now = facts_of(found)
        if now[:2] != met.facts[:2]:
            return False
        tales = self._story.tales.items()
        readers = [image for image, tale in tales if any(used is met for used, _ in tale.used)]
        return not self._story.paths.over(readers, now.mtime)

    def _content(
        self,
        version: Version,
        known: KnownContent,
        mode: int,
        mtime: int,
        package: str | None,
        source: str | None,
    ) -> Content:
        self.bytes += known.stored.size
        return Content(
            execution=self._scene.execution,
            n=next(self._n),
            at=mtime,
            version=version,
            digest=known.stored.digest,
            size=known.stored.size,
            mode=mode,
            mtime=mtime,
            stored=known.kept,
            package=package,
            source=source,
        )

    # -- edges

    def _tales(self) -> Iterator[AnyEvent]:
        execution = self._scene.execution
        lasting = {line[0] for line in self._story.paths if _is_unchanged(line)}
        for image, tale in self._story.tales.items():
            uid = self._uid(image)
            there: set[str] = set()
            for (met, how), at in tale.used.items():
                version = self._version(met)
                if met in lasting:
                    there.add(version.locator)
                yield Used(
                    execution=execution,
                    n=next(self._n),
                    at=at,
                    activity=uid,
                    version=version,
                    how=how,
                )
            for (kind, locator, answer), at in tale.looked.items():
                if kind == "present" and not answer and locator in there:
                    continue  # who used it says so
                yield Looked(
                    execution=execution,
                    n=next(self._n),
                    at=at,
                    activity=uid,
                    kind=kind,
                    locator=locator,
                    answer=answer,
                )

    def _flows(self) -> Iterator[AnyEvent]:
        execution = self._scene.execution
        for (image, locator, how), at in self._story.peers.items():
            yield Used(
                execution=execution,
                n=next(self._n),
                at=at,
                activity=self._uid(image),
                version=self._outside(locator),
                how=how,
            )
        for (image, stream, way), at in self._story.streams.items():
            version = self._outside(f"stream://{execution}/{stream}")
            kind = Used if stream == "stdin" and way & 1 else Generated
            if stream == "stdin" or way & 2:
                yield kind(
                    execution=execution,
                    n=next(self._n),
                    at=at,
                    activity=self._uid(image),
                    version=version,
                    how="inherited",
                )
        forked = {i: p.parent for i, p in self._story.processes.items() if p.exec is None}
        for learnt, by, via in sorted(self._story.flows.informed(forked)):
            yield Informed(
                execution=execution,
                n=next(self._n),
                at=self._story.processes[learnt].at,
                activity=self._uid(learnt),
                by=self._uid(by),
                via=via,
            )

    def _gap(self, activity: str, what: str, why: str, path: bytes | None, at: int) -> Gap:
        return Gap(
            execution=self._scene.execution,
            n=next(self._n),
            at=at,
            activity=activity,
            what=what,
            why=why,
            locator=self._locator(path) if path else None,
        )


def _is_unchanged(line: list[ObservedVersion]) -> bool:
    """Whether one file was at this path from beginning to end."""
    return len(line) == 1 and line[0].maker is None and not line[0].gone


def _settle_opener(met: ObservedVersion, now: os.stat_result) -> None:
    """Who opened a file for its children wrote to it as well if it changed after they were done."""
    if met.opener is None or met.inherited is None:
        return
    if key_of(met.inherited)[2:] != (now.st_size, now.st_mtime_ns):
        met.makers.setdefault(met.opener, "write")


def _difference(whole: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {k: v for k, v in own.items() if whole.get(k) != v}
    return changed | {name: None for name in whole if name not in own}

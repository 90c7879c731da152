"""Build events from the state: processes, versions with their makers and content, edges, gaps."""

import stat
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from clew.confined_files import HOST
from clew.documents.ids import Locator, Uid
from clew.prov.event_numbers import FIRST_WITNESSED
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
    Observation,
    Started,
    Used,
    Version,
)
from clew.prov.locators import decode_text, stream_locator
from clew.store import Stored
from clew.witness.downloads.trace_origins import find_input_origins, find_origins
from clew.witness.syscalls.content_capture import KnownContent, is_file
from clew.witness.syscalls.data_flows import READS, WRITES
from clew.witness.syscalls.final_contents import (
    find_final_contents,
    is_changed_while_read,
    settle_opener,
)
from clew.witness.syscalls.observations import group_looks
from clew.witness.syscalls.trace_contents import TraceContents
from clew.witness.syscalls.trace_state import TraceContext, TracedProcess, TraceState
from clew.witness.syscalls.version_tracker import ObservedVersion

_CHANGED_WHILE_READ = (
    "changed by another program while it was read: what was read may differ from this content"
)
_READ_WHILE_MAPPED = (
    "read while a process had it mapped for writing: the bytes that were read are not known"
)


class EventBuilder:
    """Builds the events of one execution. `owners` names the package of each path that has one;
    `environ` are the variables to run git with, or None to leave Git out."""

    def __init__(
        self,
        context: TraceContext,
        state: TraceState,
        contents: TraceContents,
        owners: Mapping[bytes, str],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._context = context
        self._state = state
        self._contents = contents
        self._owners = owners
        self._origins = find_origins(state, context.redactor)
        if contents.files is HOST:
            inputs = find_input_origins(state, context.redactor, owners, environ)
            self._origins = inputs | self._origins
        self._n = count(FIRST_WITNESSED)
        self._versions: dict[ObservedVersion, Version] = {}
        self._words: dict[int, list[str]] = {}
        self._environments: dict[int, dict[str, str | None]] = {}
        self.bytes = 0
        """The size of all content in the events."""

    def events(self) -> Iterator[AnyEvent]:
        yield from self._processes()
        self._final = find_final_contents(self._state, self._contents)
        for history in self._state.versions:
            for observed in history:
                yield from self._version_events(observed, last=observed is history[-1])
        yield from self._inputs()
        for image, observed, how, at in self._state.invalidated:
            yield Invalidated(
                execution=self._context.execution,
                n=next(self._n),
                at=at,
                activity=self._uid(image),
                version=self._version(observed),
                how=how,
            )
        for a, b in sorted(self._state.aliases):
            yield Alias(
                execution=self._context.execution,
                n=next(self._n),
                at=0,
                a=self._locator(a),
                b=self._locator(b),
            )
        yield from self._flows()
        for image, what, why, path, at in self._state.gaps:
            yield self._gap(self._uid(image), what, why, path, at)

    # -- names

    def _uid(self, image: int) -> Uid:
        return self._state.processes[image].uid

    def _locator(self, path: bytes) -> Locator:
        return self._context.locate(path)

    def _version(self, observed: ObservedVersion) -> Version:
        version = self._versions.get(observed)
        if version is None:
            maker = self._context.execution if observed.maker is None else self._uid(observed.maker)
            version = Version(self._locator(observed.path), maker, observed.ordinal)
            self._versions[observed] = version
        return version

    def _external_version(self, locator: Locator) -> Version:
        return Version(locator, self._context.execution, 1)

    # -- processes

    def _processes(self) -> Iterator[AnyEvent]:
        for image, process in self._state.processes.items():
            words = self._words[image] = [decode_text(word) for word in self._state.command(image)]
            if process.exec:  # an earlier command line may contain its secrets, too
                self._context.redactor.learn_command(words)
        for image, process in self._state.processes.items():
            yield self._started(image, process)
            if process.exit is not None:
                yield self._ended(process)

    def _started(self, image: int, process: TracedProcess) -> Started:
        return Started(
            execution=self._context.execution,
            n=next(self._n),
            at=process.at,
            activity=process.uid,
            kind="process",
            parent=self._uid(process.parent) if process.parent else self._context.execution,
            number=process.number,
            pid=process.pid,
            command=self._context.redactor.arguments(self._words[image]).words,
            exe=decode_text(process.exec.exe) if process.exec else None,
            cwd=decode_text(process.exec.cwd) if process.exec else None,
            environment=self._environment(process.exec.variables) if process.exec else {},
            facets=self._start_facets(image, process),
        )

    def _environment(self, number: int) -> dict[str, str | None]:
        """The variables of this set that differ from those of the execution."""
        if number not in self._environments:
            variables = self._state.variables.get(number, {})
            self._environments[number] = _difference(self._context.variables, variables)
        return self._environments[number]

    def _start_facets(self, image: int, process: TracedProcess) -> dict[str, Any]:
        facets: dict[str, Any] = {}
        start = self._state.process_starts.facet(image)
        if start is not None and process.exec is not None:
            seals = self._state.seals.get(process.exec.variables, {})
            changed = {n: seal for n, seal in seals.items() if self._context.sealed.get(n) != seal}
            facets["begun"] = {**start, "sealed": changed} if changed else start
        if process.reused is not None:
            facets["reused_from"] = process.reused
        return facets

    def _ended(self, process: TracedProcess) -> Ended:
        assert process.exit is not None
        end = process.exit
        return Ended(
            execution=self._context.execution,
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

    def _version_events(self, observed: ObservedVersion, *, last: bool) -> Iterator[AnyEvent]:
        known: KnownContent | None = None
        mode, mtime, missing = 0, 0, ""
        final = self._final.get(observed) if last else None
        if isinstance(final, str):
            missing = final
        elif final is not None:
            known, now = final
            mode, mtime = now.st_mode, now.st_mtime_ns
            settle_opener(observed, now)
        if observed.known is not None and known is None:
            content = observed.known
            known = KnownContent(Stored(content.digest, content.size), content.kept)
            mode, mtime, missing = content.mode, content.mtime, ""
        if observed.uncertain:
            missing = _READ_WHILE_MAPPED
        elif (
            known is None
            and observed.file_stat is not None
            and stat.S_ISREG(observed.file_stat.mode)
        ):
            known = self._contents.known(observed.file_stat)
            mode, mtime = observed.file_stat.mode, observed.file_stat.mtime
            needed = observed.read or (observed.is_base and observed.maker is None)
            if known is None and needed and is_file(observed.path):
                missing = missing or self._contents.why_missing(observed.file_stat)
        version = self._version(observed)
        for image, how in observed.makers.items():
            yield Generated(
                execution=self._context.execution,
                n=next(self._n),
                at=observed.at,
                activity=self._uid(image),
                version=version,
                how=how,
            )
            if observed.base is not None:
                yield Used(
                    execution=self._context.execution,
                    n=next(self._n),
                    at=observed.at,
                    activity=self._uid(image),
                    version=self._version(observed.base),
                    how="append",
                )
        if known is not None:
            source = self._origins.get(observed.path) if last else None
            package = self._owners.get(observed.path)
            yield self._content(version, known, mode, mtime, package, source)
            is_input = last and observed.maker is None and observed.read
            changed = is_input and is_changed_while_read(self._state, self._contents, observed)
            missing = _CHANGED_WHILE_READ if changed else ""
        if missing and missing != "gone":
            yield self._gap(self._context.execution, "content", missing, observed.path, observed.at)

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
            execution=self._context.execution,
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

    def _inputs(self) -> Iterator[AnyEvent]:
        execution = self._context.execution
        unchanged = {history[0] for history in self._state.versions if _is_unchanged(history)}
        for image, inputs in self._state.inputs_of_process.items():
            uid = self._uid(image)
            used: set[str] = set()
            for (observed, how), at in inputs.used.items():
                version = self._version(observed)
                if observed in unchanged:
                    used.add(version.locator)
                yield Used(
                    execution=execution,
                    n=next(self._n),
                    at=at,
                    activity=uid,
                    version=version,
                    how=how,
                )
            for at, together in group_looks(inputs.looked, used):
                yield self._looked(uid, together, at)

    def _looked(self, uid: Uid, together: list[Observation], at: int) -> Looked:
        kind, locator, answer = together[0]
        return Looked(
            execution=self._context.execution,
            n=next(self._n),
            at=at,
            activity=uid,
            kind=kind,
            locator=locator,
            answer=answer,
            also=tuple(together[1:]),
        )

    def _flows(self) -> Iterator[AnyEvent]:
        execution = self._context.execution
        for (image, locator, how), at in self._state.peers.items():
            yield Used(
                execution=execution,
                n=next(self._n),
                at=at,
                activity=self._uid(image),
                version=self._external_version(locator),
                how=how,
            )
        for (image, stream, access), at in self._state.streams.items():
            version = self._external_version(stream_locator(execution, stream))
            kind = Used if stream == "stdin" and access & READS else Generated
            if stream == "stdin" or access & WRITES:
                yield kind(
                    execution=execution,
                    n=next(self._n),
                    at=at,
                    activity=self._uid(image),
                    version=version,
                    how="inherited",
                )
        forked = {i: p.parent for i, p in self._state.processes.items() if p.exec is None}
        for informed, by, via in sorted(self._state.flows.informed(forked)):
            yield Informed(
                execution=execution,
                n=next(self._n),
                at=self._state.processes[informed].at,
                activity=self._uid(informed),
                by=self._uid(by),
                via=via,
            )

    def _gap(self, activity: Uid, what: str, why: str, path: bytes | None, at: int) -> Gap:
        return Gap(
            execution=self._context.execution,
            n=next(self._n),
            at=at,
            activity=activity,
            what=what,
            why=why,
            locator=self._locator(path) if path else None,
        )


def _is_unchanged(history: list[ObservedVersion]) -> bool:
    """Whether the path had the same file throughout the execution."""
    return len(history) == 1 and history[0].maker is None and not history[0].gone


def _difference(outer: Mapping[str, str], inner: Mapping[str, str]) -> dict[str, str | None]:
    """Variables of `inner` that differ from `outer`; None: it does not have the variable."""
    changed: dict[str, str | None] = {k: v for k, v in inner.items() if outer.get(k) != v}
    return changed | {name: None for name in outer if name not in inner}

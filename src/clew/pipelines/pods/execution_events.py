"""The events of a task's execution in a Pod: what it was given and what it made, as declared.

Where the processes inside were recorded, the execution has them and the files that they used;
otherwise it has one process, which stands for the Pod, and a gap that says so.
"""

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from clew.documents.ids import Digest, Locator, Uid
from clew.pipelines.pods.artifact_store import StoredFile
from clew.prov.event_numbers import (
    ENDED,
    FIRST_WITNESSED,
    LEFT_OUT,
    LOST_TRACE,
    STARTED,
    UNSEEN_CONTAINER,
)
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Started,
    Used,
    Version,
)
from clew.witness.syscalls.trace_conversion import ConvertedTrace

_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}
_UNSEEN = "processes in the Pod were not recorded"
_ONLY_DECLARED = "only declared inputs and outputs are known"
_DECLARED = "declared"
"""How an input is used that no process was seen to read."""
_FILE_MODE = 0o100644


class PodRecord(Struct, kw_only=True):
    """What is known of an attempt, as far as it got."""

    execution: Uid
    name: str
    """Of the execution, in lineage."""
    agent: str
    namespace: str
    began: int
    """ns since the epoch."""
    pod: str = ""
    node: str | None = None
    image: str = ""
    image_digest: str | None = None
    placement: str | None = None
    """Why it ran on its node, if the latency-aware scheduler chose that."""
    command: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    status: int | None = None
    ended: int = 0
    inputs: Sequence[StoredFile] = ()
    outputs: Sequence[StoredFile] = ()
    unseen: str = "its trace was not stored"
    """Why its processes are not known, if they are not."""
    left_out: Sequence[str] = ()
    """Paths of what it left and was not stored."""
    retries: list[dict[str, str | None]] = field(default_factory=list)
    """Earlier Pods of the same attempt, and why they did not end it."""

    @property
    def facets(self) -> dict[str, object]:
        """Where it ran: also those of the task."""
        where: dict[str, object] = {"pod": self.pod, "node": self.node}
        where["image_digest"] = self.image_digest
        if self.placement is not None:
            where["placement"] = self.placement
        return where


def build_events(
    record: PodRecord, stored: Container[str] = (), witnessed: ConvertedTrace | None = None
) -> list[AnyEvent]:
    """All events but those of the output. `stored`: the digests whose bytes are in the project;
    `witnessed`: the processes in the Pod and what they did, if that is known."""
    where = {**record.facets, "namespace": record.namespace, "image": record.image}
    if record.retries:
        where["retries"] = record.retries
    facets: dict[str, object] = {"streams": _STREAMS, "task_pod": where}
    started = Started(
        execution=record.execution,
        n=STARTED,
        at=record.began,
        activity=record.execution,
        kind="execution",
        agent=record.agent,
        command=record.command,
        environment=dict(record.environment),
        image=record.image,
        node=record.node,
        facets=facets,
    )
    if witnessed is None:
        seen: list[AnyEvent] = _stand_in(record)
        process = process_of(record.execution)
    else:
        seen = [_complete(event, record, witnessed.first) for event in witnessed.events]
        process = witnessed.first
    declared = _Declared(record, process, seen, stored)
    events = [started, *declared.correct(seen), *declared.missing()]
    return [*events, *_gap_events(record, witnessed), _end(record, witnessed)]


def _stand_in(record: PodRecord) -> list[AnyEvent]:
    """The process that stands for a Pod whose processes are not known."""
    process = process_of(record.execution)
    return [
        Started(
            execution=record.execution,
            n=FIRST_WITNESSED,
            at=record.began,
            activity=process,
            kind="process",
            parent=record.execution,
            number=1,
            command=record.command,
            exe=record.command[0] if record.command else None,
            name=record.name,
            image=record.image,
            node=record.node,
            facets={"task_pod": record.facets},
        ),
        Ended(
            execution=record.execution,
            n=FIRST_WITNESSED + 1,
            at=record.ended,
            activity=process,
            status=record.status,
        ),
    ]


def _complete(event: AnyEvent, record: PodRecord, first: Uid) -> AnyEvent:
    """Say where a process ran."""
    if not isinstance(event, Started):
        return event
    placed = replace(event, image=record.image, node=record.node)
    if event.activity != first:
        return placed
    facets = {**event.facets, "task_pod": record.facets}
    return replace(placed, name=record.name, facets=facets)


def _end(record: PodRecord, witnessed: ConvertedTrace | None) -> Ended:
    files = [*record.inputs, *record.outputs]
    inputs, outputs = len(record.inputs), len(record.outputs)
    if witnessed is not None:
        inputs, outputs = witnessed.state.totals()
    return Ended(
        execution=record.execution,
        n=ENDED,
        at=record.ended,
        activity=record.execution,
        status=record.status,
        facets={
            "processes": len(witnessed.state.processes) if witnessed else 1,
            "inputs": inputs,
            "outputs": outputs,
            "bytes": sum(file.size for file in files),
            "new_bytes": 0,
            "packages": {},
        },
    )


def process_of(execution: Uid) -> Uid:
    """The uid of the process that stands for the Pod."""
    return Uid(f"{execution}.pod")


class _Declared:
    """The declared inputs and outputs, beside what was seen of them.

    The helper hashed them as it moved them, so what it says about their content takes precedence.
    """

    def __init__(
        self,
        record: PodRecord,
        process: Uid,
        seen: Sequence[AnyEvent],
        stored: Container[str],
    ) -> None:
        """`process`: the one that stands for the Pod."""
        self._how = "open" if process == process_of(record.execution) else _DECLARED
        self._record = record
        self._process = process
        self._stored = stored
        self._next = max((event.n for event in seen), default=FIRST_WITNESSED) + 1
        self._inputs = {file.url: file for file in record.inputs}
        self._outputs = {file.url: file for file in record.outputs}
        self._used = {event.version.locator for event in seen if isinstance(event, Used)}
        self._contents = {e.version: e for e in seen if isinstance(e, Content)}
        self._last: dict[str, Version] = {}
        """The last version of each output that was seen."""
        for event in seen:
            if isinstance(event, Generated) and event.version.locator in self._outputs:
                last = self._last.get(event.version.locator)
                if last is None or last.ordinal <= event.version.ordinal:
                    self._last[event.version.locator] = event.version

    def correct(self, seen: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
        """What was seen, without the content of declared files."""
        declared = {*self._inputs, *self._outputs}
        for event in seen:
            if isinstance(event, Content) and event.version.locator in declared:
                continue
            yield event

    def missing(self) -> Iterator[AnyEvent]:
        """What was declared and not seen, and the content of everything declared."""
        record = self._record
        for url, file in self._inputs.items():
            version = Version(Locator(url), record.execution, 1)
            if url not in self._used:
                yield Used(
                    execution=record.execution,
                    n=self._number(),
                    at=record.began,
                    activity=self._process,
                    version=version,
                    how=self._how,
                )
            yield self._content(record.began, version, file)
        for url, file in self._outputs.items():
            made = self._last.get(url)
            version = made or Version(Locator(url), self._process, 1)
            if made is None:
                yield Generated(
                    execution=record.execution,
                    n=self._number(),
                    at=record.ended,
                    activity=self._process,
                    version=version,
                    finished=True,
                )
            yield self._content(record.ended, version, file)

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _content(self, at: int, version: Version, file: StoredFile) -> Content:
        seen = self._contents.get(version)
        return Content(
            execution=self._record.execution,
            n=self._number(),
            at=at,
            version=version,
            digest=Digest(file.digest),
            size=file.size,
            mode=seen.mode if seen else _FILE_MODE,
            mtime=seen.mtime if seen else at,
            stored=file.digest in self._stored,
            source=f"etag={file.etag}" if file.etag else None,
        )


def _gap_events(record: PodRecord, witnessed: ConvertedTrace | None) -> Iterator[AnyEvent]:
    uid = record.execution
    gap = Gap(execution=uid, n=0, at=record.ended, activity=uid, what="container", why="")
    if witnessed is None:
        yield replace(gap, n=UNSEEN_CONTAINER, why=f"{_UNSEEN} ({record.unseen}): {_ONLY_DECLARED}")
    elif record.status is not None and witnessed.state.root_exit() is None:
        yield replace(gap, n=LOST_TRACE, what="trace", why="the trace ends before the command")
    if record.left_out:
        why = f"links and special files were not stored: {', '.join(record.left_out[:3])}"
        yield replace(gap, n=LEFT_OUT, what="content", why=why)

"""The events of a task's execution in a Pod: what it was given and what it made, as declared.

The processes inside are not seen, so the execution has one process, which stands for the Pod, and a
gap that says so.
"""

from collections.abc import Container, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from clew.documents.ids import Digest, Locator, Uid
from clew.pipelines.pods.artifact_store import StoredFile
from clew.prov.event_numbers import (
    ENDED,
    FIRST_WITNESSED,
    LEFT_OUT,
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

_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}
_UNSEEN = "processes in the Pod were not recorded: only declared inputs and outputs are known"
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


def build_events(record: PodRecord, stored: Container[str] = ()) -> list[AnyEvent]:
    """All events but those of the output. `stored`: the digests whose bytes are in the project."""
    uid, process = record.execution, process_of(record.execution)
    where = {**record.facets, "namespace": record.namespace, "image": record.image}
    if record.retries:
        where["retries"] = record.retries
    files = [*record.inputs, *record.outputs]
    return [
        Started(
            execution=uid,
            n=STARTED,
            at=record.began,
            activity=uid,
            kind="execution",
            agent=record.agent,
            command=record.command,
            environment=dict(record.environment),
            image=record.image,
            node=record.node,
            facets={"streams": _STREAMS, "task_pod": where},
        ),
        Started(
            execution=uid,
            n=FIRST_WITNESSED,
            at=record.began,
            activity=process,
            kind="process",
            parent=uid,
            number=1,
            command=record.command,
            exe=record.command[0] if record.command else None,
            name=record.name,
            image=record.image,
            node=record.node,
            facets={"task_pod": record.facets},
        ),
        *_file_events(record, process, stored),
        Ended(
            execution=uid,
            n=FIRST_WITNESSED + 1,
            at=record.ended,
            activity=process,
            status=record.status,
        ),
        *_gap_events(record),
        Ended(
            execution=uid,
            n=ENDED,
            at=record.ended,
            activity=uid,
            status=record.status,
            facets={
                "processes": 1,
                "inputs": len(record.inputs),
                "outputs": len(record.outputs),
                "bytes": sum(file.size for file in files),
                "new_bytes": 0,
                "packages": {},
            },
        ),
    ]


def process_of(execution: Uid) -> Uid:
    """The uid of the process that stands for the Pod."""
    return Uid(f"{execution}.pod")


def _file_events(record: PodRecord, process: Uid, stored: Container[str]) -> Iterator[AnyEvent]:
    number = FIRST_WITNESSED + 2
    seen: set[str] = set()
    for file in record.inputs:
        if file.url in seen:
            continue
        seen.add(file.url)
        version = Version(Locator(file.url), record.execution, 1)
        yield Used(
            execution=record.execution,
            n=number,
            at=record.began,
            activity=process,
            version=version,
        )
        content = _content(record, number + 1, record.began, version, file)
        yield replace(content, stored=file.digest in stored)
        number += 2
    for file in record.outputs:
        version = Version(Locator(file.url), process, 1)
        yield Generated(
            execution=record.execution,
            n=number,
            at=record.ended,
            activity=process,
            version=version,
            finished=True,
        )
        content = _content(record, number + 1, record.ended, version, file)
        yield replace(content, stored=file.digest in stored)
        number += 2


def _gap_events(record: PodRecord) -> Iterator[AnyEvent]:
    uid = record.execution
    gap = Gap(execution=uid, n=0, at=record.ended, activity=uid, what="container", why=_UNSEEN)
    yield replace(gap, n=UNSEEN_CONTAINER)
    if record.left_out:
        why = f"links and special files were not stored: {', '.join(record.left_out[:3])}"
        yield replace(gap, n=LEFT_OUT, what="content", why=why)


def _content(record: PodRecord, n: int, at: int, version: Version, file: StoredFile) -> Content:
    return Content(
        execution=record.execution,
        n=n,
        at=at,
        version=version,
        digest=Digest(file.digest),
        size=file.size,
        mode=_FILE_MODE,
        mtime=at,
        stored=False,
        source=f"etag={file.etag}" if file.etag else None,
    )

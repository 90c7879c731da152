"""The processes of a task in a Pod and the files that they used, from its trace.

The converter is the one of commands on this machine. The trace comes from the container of the
task, which may write anything: every uid and version is made here, in the scope of the execution,
and a trace that cannot be understood counts as none.
"""

from collections.abc import Container, Iterable, Sequence

from msgspec import Struct

from clew.documents.ids import Digest
from clew.errors import ClewError
from clew.kube.tasks import task_pod
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.execution_events import PodRecord
from clew.pipelines.pods.pod_locators import PodLocators
from clew.pipelines.pods.task_documents import TaskTrace
from clew.prov.event_validation import check_events
from clew.prov.events import AnyEvent, Generated, Invalidated, Used
from clew.redaction import Redactor
from clew.store import Stored
from clew.witness.syscalls.trace_contents import GivenContent, GivenContents
from clew.witness.syscalls.trace_conversion import ConvertedTrace, TraceConverter
from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Descriptor,
    Exec,
    FileStat,
    decode_records,
    sort_records,
)

_IGNORED = (
    *(f"{task_pod.CONTROL}/{name}" for name in ("bin/", "lock", "ready", "status", ".")),
    task_pod.TRACE,
)
"""What the task shares with its helper besides its own files."""
_FETCHED = ("http://", "https://")
_SHOWN = 200


class NotWitnessed(Exception):
    """The trace does not show the processes; the message says why."""


class TracedTask(Struct, frozen=True):
    """What is known of a task whose processes are recorded."""

    place: str
    """The URL of the place of its Pod."""
    inputs: Sequence[str]
    """The URLs of the artifacts that it is given."""
    mounts: Sequence[str]
    """The paths of its volumes."""
    secrets: Sequence[str]
    """The variables whose values come from Secrets."""
    redact: Sequence[str]
    """Names of variables that are secret, too."""


def convert_trace(
    task: TracedTask, trace: TaskTrace, record: PodRecord, stored: Container[str]
) -> ConvertedTrace:
    """Raises NotWitnessed. `stored`: the digests whose bytes are in the project."""
    try:
        records = sort_records(decode_records(trace.records)[0])
        if not any(isinstance(record, Exec) for record in records):
            raise NotWitnessed("the trace is empty")
        redactor = Redactor({}, task.redact)
        redactor.names |= frozenset(task.secrets)
        converter = TraceConverter(
            locate=PodLocators(
                record.execution,
                record.image_digest,
                inputs=task.inputs,
                outputs=[file.url for file in record.outputs],
                mounts=task.mounts,
                records=records,
            ),
            boot=record.execution,  # not that of the node: containers may have equal process ids
            variables=record.environment,
            sealed={},
            redactor=redactor,
            ignore=tuple(map(str.encode, _IGNORED)),
            contents=GivenContents(_find_contents(record, trace, stored)),
            owners=lambda paths: {},
        )
        converted = converter.build(record.execution, records, _name_streams(records))
        check_events(record.execution, converted.events)
        _check_places(record, converted.events)
    except (NotWitnessed, MemoryError):
        raise
    except ClewError as error:
        raise NotWitnessed(f"the trace is malformed: {error.message}") from error
    except Exception as error:  # the records may contradict each other in any way
        raise NotWitnessed(f"the trace is malformed: {type(error).__name__}") from error
    return converted


def _check_places(record: PodRecord, events: Iterable[AnyEvent]) -> None:
    """Raise NotWitnessed for a claim about what is not of this container alone: that it changed a
    file which all containers of the image have, or an artifact that it was given, or that it
    fetched a file of another machine."""
    uid = record.execution
    made = (f"file://{uid}/", f"stream://{uid}/", *(file.url for file in record.outputs))
    for event in events:
        if isinstance(event, Generated | Invalidated):
            possible = event.version.locator.startswith(made)
        elif isinstance(event, Used) and event.how == "fetch":
            possible = event.version.locator.startswith(_FETCHED)
        else:
            continue
        if not possible:
            place = event.version.locator[:_SHOWN]
            raise NotWitnessed(f"the trace is malformed: it cannot have {event.how} {place}")


def _find_contents(
    record: PodRecord, trace: TaskTrace, stored: Container[str]
) -> dict[bytes, GivenContent]:
    """The content of artifacts, in the states in which the helper saw them."""
    files = {file.url: file for file in (*trace.header.inputs, *record.outputs)}
    return {
        task_documents.data_path(url).encode(): GivenContent(
            FileStat(*state),
            Stored(Digest(file.digest), file.size),
            file.digest in stored,
        )
        for url, state in trace.header.states.items()
        if (file := files.get(url)) is not None
    }


def _name_streams(records: Iterable[AnyRecord]) -> dict[bytes, str]:
    """The pipes of the command's output: the log has both in one."""
    first = 0
    names: dict[bytes, str] = {}
    for record in records:
        if isinstance(record, Descriptor):
            first = first or record.image
            if record.image == first and record.fd in (1, 2):
                names[record.name] = "stdout"
    return names

"""Traces that the container of a task may write to harm others, and what is left of them."""

import struct

import msgspec
import pytest

from clew.documents.ids import Uid
from clew.pipelines.pods.artifact_store import StoredFile
from clew.pipelines.pods.conversion_process import Limits, build_traced_events
from clew.pipelines.pods.execution_events import PodRecord
from clew.pipelines.pods.task_documents import FileState, TaskTrace, TraceHeader
from clew.pipelines.pods.witnessed_processes import NotWitnessed, TracedTask, convert_trace
from clew.prov.events import Generated, Started
from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Change,
    Descriptor,
    Exec,
    Fetch,
    FileStat,
    Look,
    Open,
    Seen,
    Spawn,
)

PLACE = "s3://lake/runs/1/train/1"
INPUT = StoredFile("s3://lake/data", 5, f"blake3:{'a' * 64}", "e1")
STATE: FileState = (1, 2, 5, 4, 5, 0o100644)
UID = Uid("e" * 32)
TASK = TracedTask(place=PLACE, inputs=(INPUT.url,), mounts=(), secrets=(), redact=())
RECORD = PodRecord(
    execution=UID,
    name="train",
    agent="me",
    namespace="team",
    began=1,
    ended=2**62,
    image_digest=f"sha256:{'1' * 64}",
    status=0,
    inputs=(INPUT,),
)
BEGIN = (Spawn(1, 1, 1, 0, 10, 5), Exec(2, 1, 1, 1, 10, b"/bin/sh", b"sh", [b"sh"], 1, b"/"))
LITTLE = Limits(memory=400 << 20, cpu_seconds=1)


def trace(*records: AnyRecord) -> TaskTrace:
    encoded = map(msgspec.msgpack.encode, (*BEGIN, *records))
    parts = [struct.pack("<I", len(each)) + each for each in encoded]
    return TaskTrace(TraceHeader(inputs=(INPUT,), states={INPUT.url: STATE}), b"".join(parts))


def test_the_events_are_those_of_the_converter() -> None:
    events = build_traced_events(TASK, trace(), RECORD, ())
    assert [each.kind for each in events if isinstance(each, Started)] == ["execution", "process"]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([Spawn(3, 1, 2, 3, 11, 5), Spawn(4, 1, 3, 2, 12, 5)], id="own ancestor"),
        pytest.param(
            [Look(3, 1, 1, 3, b"/a" * (1 << 15), 2, 0, None, None, 1), Seen(4, 1, 1, [], [1])],
            id="long path",
        ),
    ],
)
def test_a_trace_that_never_ends_or_takes_all_memory(records: list[AnyRecord]) -> None:
    with pytest.raises(NotWitnessed, match="too much memory or time"):
        build_traced_events(TASK, trace(*records), RECORD, (), LITTLE)


@pytest.mark.parametrize(
    "path",
    [b"/s3/lake/data", b"/usr/bin/python3"],
    ids=["an artifact that others use", "a file of all containers of the image"],
)
def test_a_trace_that_claims_to_have_made_what_others_have(path: bytes) -> None:
    """By a file that it mapped, which has the inode of the other one."""
    state = FileStat(*STATE)
    mapped = [
        Open(3, 1, 1, b"/tmp/own", None, 0o102, state, None, 0),
        Change(4, 1, 1, b"map", b"/tmp/own", None, state, None),
        Open(5, 1, 0, path, None, 0, state, None, 1),
        Seen(6, 1, 1, [6, 1], []),
    ]
    with pytest.raises(NotWitnessed, match="it cannot have write"):
        convert_trace(TASK, trace(*mapped), RECORD, ())


def test_what_a_descriptor_may_have_changed_is_its_own() -> None:
    inherited = Descriptor(3, 1, 1, 5, 2, b"/usr/bin/python3", FileStat(*STATE))
    events = convert_trace(TASK, trace(inherited), RECORD, ()).events
    made = [each.version.locator for each in events if isinstance(each, Generated)]
    assert made == [f"file://{UID}/usr/bin/python3"]


@pytest.mark.parametrize(
    "url",
    [b"s3://other-team/model", b"file://machine/etc/shadow", b"stream://" + b"a" * 32 + b"/stdout"],
)
def test_a_trace_that_claims_to_have_fetched_what_is_elsewhere(url: bytes) -> None:
    with pytest.raises(NotWitnessed, match="it cannot have fetch"):
        convert_trace(TASK, trace(Fetch(3, 1, 1, url)), RECORD, ())

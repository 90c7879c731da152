"""The documents that an attempt of a task and its Pod exchange through the artifact store.

    PLACE/plan.json     what the Pod needs; written before the Pod is created
    PLACE/NAME          an output artifact: a file, or a directory of files
    PLACE/trace.zst     what the tracer recorded, also of a task that failed
    PLACE/result.json   what the task made; written last, so that a reader of it sees everything

PLACE belongs to one Pod alone. Parameters are part of the documents, so they may be large.
"""

from typing import Any

import msgspec
from msgspec import Struct

from clew.pipelines.pods.artifact_store import SCHEME, StoredFile

PLAN = "plan.json"
RESULT = "result.json"
TRACE = "trace.zst"
RESERVED = frozenset({PLAN, RESULT, TRACE, ".", ".."})
"""No output may have these names: the task would write the document."""
MAX_DOCUMENT = 512 << 20
"""Bytes of one document."""
MAX_TRACE = 64 << 20
"""Bytes of the records of a trace: what goes beyond is not kept."""
MAX_HEADER = 64 << 20
VARIABLE = "CLEW_TASK_PLACE"
"""The variable that tells the helper its place."""
DATA = "/s3"
"""The directory that stands for `s3://` in a Pod."""
TASK = "/clew/task"
"""The directory with the files of the task: its input, and the program of a component."""
SDK = "/clew/sdk/site-packages"
"""The runtime of the kfp SDK, for images without it."""
INPUT = "executor_input.json"
OUTPUT = "executor_output.json"
SOURCE = "component.py"
CALL = "call.json"
"""How `component_main` runs a component: {function, installs}."""


class ComponentCall(Struct, frozen=True):
    """How to run a Python component."""

    source: str
    function: str
    installs: tuple[tuple[str, ...], ...] = ()


class TaskPlan(Struct, frozen=True, kw_only=True):
    inputs: tuple[str, ...]
    """The URLs of input artifacts in the store."""
    executor_input: dict[str, Any]
    parameters: tuple[str, ...]
    """The names of output parameters."""
    artifacts: tuple[str, ...]
    """The names of output artifacts."""
    call: ComponentCall | None = None
    """Of a Python component."""
    trace: bool = False
    """Whether its processes are to be recorded."""
    secrets: tuple[str, ...] = ()
    """The variables whose values come from Secrets."""


class PodTaskResult(Struct, frozen=True, kw_only=True):
    """What a task that succeeded left."""

    output: dict[str, Any]
    """What the SDK's executor wrote; empty for a container component."""
    texts: dict[str, str]
    """The content of the files of output parameters."""
    inputs: tuple[StoredFile, ...]
    """The files that it was given."""
    artifacts: dict[str, tuple[StoredFile, ...]]
    """By the name of the artifact."""
    left_out: tuple[str, ...] = ()
    """What it left beside files, which was not stored."""


FileState = tuple[int, int, int, int, int, int]
"""A `trace_format.FileStat`."""


class TraceHeader(Struct, frozen=True, kw_only=True):
    """What the helper says about a trace."""

    why_not: str = ""
    """Why there is none."""
    cut: bool = False
    """It is longer than what was stored."""
    inputs: tuple[StoredFile, ...] = ()
    """The files that the task was given."""
    states: dict[str, FileState] = {}
    """By URL, the files that it was given and those that it left, in this state."""


class TaskTrace(Struct, frozen=True):
    """The trace of a task. Its own container wrote the records: they may say anything."""

    header: TraceHeader
    records: bytes = b""


def encode(document: Struct) -> bytes:
    return msgspec.json.encode(document)


def decode_plan(data: bytes) -> TaskPlan:
    return msgspec.json.decode(data, type=TaskPlan)


def decode_result(data: bytes) -> PodTaskResult:
    return msgspec.json.decode(data, type=PodTaskResult)


def encode_trace(trace: TaskTrace) -> bytes:
    import zstandard  # late: a task need not wait for it

    header = msgspec.json.encode(trace.header)
    return zstandard.ZstdCompressor(level=1).compress(header + b"\n" + trace.records)


def decode_trace(data: bytes) -> TaskTrace:
    """Raises ValueError if it is malformed."""
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            content = reader.read(MAX_TRACE + MAX_HEADER)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    header, _, records = content.partition(b"\n")
    return TaskTrace(msgspec.json.decode(header, type=TraceHeader), records[:MAX_TRACE])


def data_path(url: str) -> str:
    """The path in a Pod of an object of the store, as the SDK computes it."""
    return f"{DATA}/{url.removeprefix(SCHEME)}"

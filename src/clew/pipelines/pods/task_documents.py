"""The documents that an attempt of a task and its Pod exchange through the artifact store.

    PLACE/plan.json     what the Pod needs; written before the Pod is created
    PLACE/NAME          an output artifact: a file, or a directory of files
    PLACE/result.json   what the task made; written last, so that a reader of it sees everything

PLACE belongs to one Pod alone. Parameters are part of the documents, so they may be large.
"""

from typing import Any

import msgspec
from msgspec import Struct

from clew.pipelines.pods.artifact_store import SCHEME, StoredFile

PLAN = "plan.json"
RESULT = "result.json"
MAX_DOCUMENT = 512 << 20
"""Bytes of one document."""
VARIABLE = "CLEW_TASK_PLACE"
"""The variable that tells the helper its place."""
DATA = "/s3"
"""The directory that stands for `s3://` in a Pod."""
TASK = "/clew/task"
"""The directory with the files of the task: its input, and the program of a component."""
SDK = "/clew/sdk"
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


def encode(document: Struct) -> bytes:
    return msgspec.json.encode(document)


def decode_plan(data: bytes) -> TaskPlan:
    return msgspec.json.decode(data, type=TaskPlan)


def decode_result(data: bytes) -> PodTaskResult:
    return msgspec.json.decode(data, type=PodTaskResult)


def data_path(url: str) -> str:
    """The path in a Pod of an object of the store, as the SDK computes it."""
    return f"{DATA}/{url.removeprefix(SCHEME)}"

"""Record the processes of a task: give its container the tracer, and store what that wrote.

The container has its own files and its own user, and may write anything. So a link in place of the
trace is not followed, and of a long trace only the first part is stored. The values of variables
that come from Secrets are masked before the trace leaves the Pod.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from clew.kube.tasks import task_pod
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import ArtifactStore, StoredFile
from clew.pipelines.pods.task_documents import FileState, TaskPlan, TaskTrace, TraceHeader
from clew.pipelines.pods.task_outputs import TaskOutputs
from clew.witness import tracer_binary

_MAX_WHY = 500
_VARIABLES = 3
"""The type of the record that has variables: see `witness.syscalls.trace_format`."""
_SHORTEST = 6
"""Shorter values are masked where the variable has them, but not searched for elsewhere."""


class TaskTracer:
    """The tracing of the task of this Pod."""

    def __init__(self, place: str, plan: TaskPlan, inputs: Iterable[StoredFile]) -> None:
        """To be called before the task may begin."""
        self._place = place
        self._plan = plan
        self._inputs = tuple(inputs)
        self._states = dict(_find_states(file.url for file in self._inputs)) if plan.trace else {}
        self._folder = _install() if plan.trace else None

    @contextmanager
    def stored(self, store: ArtifactStore) -> Iterator[None]:
        """Store the trace while the caller stores the outputs. The task has ended."""
        if not self._plan.trace:
            yield
            return
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(self._store, store)
            yield
            done.result()

    def _store(self, store: ArtifactStore) -> None:
        records, cut, why_not = b"", False, "this image of Clew has no tracer"
        if self._folder is not None:
            records, cut = _read(self._folder, task_pod.RECORDS, task_documents.MAX_TRACE)
            why_not = _read(self._folder, task_pod.WHY_NOT, _MAX_WHY)[0].decode(errors="replace")
        header = TraceHeader(
            why_not="" if records else why_not.strip() or "it left no trace",
            cut=cut,
            inputs=self._inputs,
            states=self._states | dict(self._find_outputs()),
        )
        trace = TaskTrace(header, mask_variables(records, self._plan.secrets))
        data = task_documents.encode_trace(trace)
        store.write(f"{self._place}/{task_documents.TRACE}", data)

    def _find_outputs(self) -> Iterator[tuple[str, FileState]]:
        directory = task_documents.data_path(self._place).removeprefix(task_documents.DATA)
        with suppress(OSError), TaskOutputs(task_documents.DATA) as left:
            for name in self._plan.artifacts:
                for file in left.list_files(os.fsencode(f"{directory}/{name}")):
                    if (found := left.stat(file.path)) is not None:
                        yield f"{self._place}/{name}{file.suffix}", _as_state(found)


def _install() -> int | None:
    """Put the tracer where the container of the task finds it. Returns the directory of the trace,
    opened: the task can put another in its place. None if there is no tracer."""
    if not tracer_binary.TRACER.exists():
        return None
    folder = Path(task_pod.TRACE)
    folder.mkdir()
    folder.chmod(0o777)  # the task may run as any user
    Path(task_pod.PROGRAMS).mkdir(exist_ok=True)
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    if tracer_binary.LIBRARY.exists():
        shutil.copy(tracer_binary.LIBRARY, task_pod.PROGRAMS)
    shutil.copy(tracer_binary.TRACER, task_pod.PROGRAMS)
    return opened


def _read(folder: int, name: str, most: int) -> tuple[bytes, bool]:
    """The beginning of a regular file, and whether there is more; empty if there is none."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return b"", False
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return b"", False
        data = file.read(most + 1)
    return data[:most], len(data) > most


def _find_states(urls: Iterable[str]) -> Iterator[tuple[str, FileState]]:
    for url in urls:
        with suppress(OSError):
            yield url, _as_state(os.lstat(task_documents.data_path(url)))


def _as_state(found: os.stat_result) -> FileState:
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_mode,
    )


def mask_variables(records: bytes, names: Iterable[str]) -> bytes:
    """The records of a trace with the values of these variables masked, wherever they are. A mask
    is as long as the value, so that the records stay what they are."""
    prefixes = tuple(f"{name}=".encode() for name in names)
    if not prefixes:
        return records
    entries = [entry for entry in _list_variables(records) if entry.startswith(prefixes)]
    values = {entry: entry.partition(b"=")[2] for entry in entries}
    for entry, value in values.items():
        records = records.replace(
            entry, entry[: -len(value)] + b"*" * len(value) if value else entry
        )
    for value in sorted(values.values(), key=len, reverse=True):
        if len(value) >= _SHORTEST:
            records = records.replace(value, b"*" * len(value))
    return records


def _list_variables(records: bytes) -> Iterator[bytes]:
    """All entries NAME=value in the records."""
    at = 0
    while at + 4 <= len(records):
        end = at + 4 + int.from_bytes(records[at : at + 4], "little")
        record = records[at + 4 : end]
        if record[1:2] == bytes([_VARIABLES]):
            with suppress(msgspec.MsgspecError, TypeError, IndexError):
                fields = msgspec.msgpack.decode(record)
                yield from (entry for entry in fields[-1] if isinstance(entry, bytes))
        at = end

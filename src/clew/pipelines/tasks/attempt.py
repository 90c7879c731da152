"""One attempt of a task: its files, and a lightweight component in a forked worker.

The component's module and its inputs are files in the task's own directory. So they may have any
size, are inputs of the recorded execution, and the execution can be repeated by itself.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.run_state import Node
from clew.pipelines.run_directory import RUNS
from clew.pipelines.spec.ir import PythonFunction
from clew.pipelines.spec.placeholders import artifact_path
from clew.pipelines.tasks.executor_files import OUTPUT, build_executor_input, read_outputs
from clew.pipelines.tasks.failure_message import explain_failure, read_tail
from clew.pipelines.tasks.venvs import InstallFailed, VenvBuilder
from clew.pipelines.tasks.worker_pool import WorkerPool
from clew.prov.events import AnyEvent
from clew.run.session.forked_task import ForkedTask
from clew.run.session.worker_session import WorkerSession
from clew.witness.downloads.input_origins import ORIGIN_ATTRIBUTE

_OUTPUT_SECONDS = 5.0
"""How long to wait for the end of a failed task's output, which explains the failure."""

STOPPED = "it was stopped before it started"

OnEnd = Callable[["Attempt"], None]
OnOutput = Callable[[Uid, Path], None]
"""Called when an attempt starts, with the uid of its execution and the file of its output."""


class Attempt(Protocol):
    """One attempt of one task. All methods but `events` are called from one thread."""

    node: Node

    @property
    def place(self) -> str:
        """Where its files are."""

    def start(self, on_end: OnEnd) -> None:
        """Start it; `on_end` is called when it ended, from any thread."""

    def stop(self, number: int) -> None:
        """Send a signal to all its processes."""

    def result(self) -> TaskResult:
        """Call after its end."""

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        """Its events that are not recorded yet; called from the recorder's thread."""

    def discard(self) -> None:
        """Remove what it left outside the record: it is recorded. Called from that thread, too."""

    @property
    def execution(self) -> Uid | None:
        """The uid of its execution, if there is one."""

    @property
    def facets(self) -> Mapping[str, Any]:
        """What the task's record says about where it ran, beside its execution."""

    @property
    def note(self) -> str | None:
        """What the task's record says about how it went."""


class AttemptOnThisMachine:
    """What attempts on this machine have in common: their execution says everything."""

    facets: Mapping[str, Any] = MappingProxyType({})
    note: str | None = None

    def discard(self) -> None:
        """Nothing is left."""


class TaskFiles(Struct):
    """The files of a task: its inputs, and the outputs it leaves."""

    node: Node
    directory: Path
    """Not created yet."""
    on_output: OnOutput
    """Called with the file that captures its output."""
    pipeline_url: str | None
    """The URL of the file that the pipeline came from, if it is on this machine."""

    @property
    def name(self) -> str:
        """The name of its execution."""
        return os.fspath(self.directory).rpartition(f"/{RUNS}/")[2]

    def write_inputs(self) -> None:
        self.directory.mkdir(parents=True)
        directory = os.fspath(self.directory)
        body = self.node.component.body
        if isinstance(body, PythonFunction):
            self._write(f"{directory}/component.py", body.source, origin=self.pipeline_url)
        text = json.dumps(self.executor_input, ensure_ascii=False)
        self._write(f"{directory}/executor_input.json", text)

    @staticmethod
    def _write(path: str, text: str, *, origin: str | None = None) -> None:
        """Write a new file without Python's layers: the worker waits for it. `origin`: lineage then
        names the user's own file."""
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            left = memoryview(text.encode())
            while left:
                left = left[os.write(file, left) :]
            if origin is not None:
                with suppress(OSError):
                    os.setxattr(file, ORIGIN_ATTRIBUTE, origin.encode())
        finally:
            os.close(file)

    @property
    def executor_input(self) -> dict[str, Any]:
        place = os.fspath(self.directory)
        return build_executor_input(self.node, place, place)

    def read_result(self) -> TaskResult:
        """Read the outputs that the task left."""
        output: dict[str, Any] = {}
        try:
            with suppress(FileNotFoundError), open(self.directory / OUTPUT, "rb") as file:
                output = json.loads(file.read())
        except (OSError, ValueError) as error:
            return TaskResult(error=f"its {OUTPUT} cannot be read: {error}")
        return read_outputs(self.node, self.executor_input, output, self._read_parameter)

    def _read_parameter(self, name: str) -> str | None:
        """The content of an output parameter's own file."""
        try:
            return (self.directory / name).read_text()
        except FileNotFoundError:
            return None

    def input_paths(self) -> list[str]:
        """The local files of its input artifacts."""
        lists = self.node.inputs.artifacts.values()
        paths = (artifact_path(artifact) for artifacts in lists for artifact in artifacts)
        return [path for path in paths if path.startswith("/")]


def find_free_directory(wanted: Path) -> Path:
    """`wanted`, or `wanted~2` and so on where a retried group has used it before."""
    number, free = 1, wanted
    while free.exists():
        number += 1
        free = wanted.with_name(f"{wanted.name}~{number}")
    return free


class ForkedAttempt(AttemptOnThisMachine):
    """A lightweight component in a process that a worker forks."""

    def __init__(
        self,
        files: TaskFiles,
        workers: WorkerPool,
        python: str,
        variables: Mapping[str, str],
        builder: VenvBuilder | None = None,
    ) -> None:
        """`builder`: builds the virtual environment of `python`."""
        self.node = files.node
        self.place = os.fspath(files.directory)
        self._files = files
        self._workers = workers
        self._python = python
        self._variables = variables
        self._builder = builder
        self._stopped = False
        self._session: WorkerSession | None = None
        self._task: ForkedTask | None = None
        self._error: str | None = None

    def start(self, on_end: OnEnd) -> None:
        builder = self._builder
        if builder is None or builder.venv.is_built():
            self._start(on_end)
        else:
            threading.Thread(target=self._build, args=(builder, on_end), daemon=True).start()

    def _build(self, builder: VenvBuilder, on_end: OnEnd) -> None:
        try:
            builder.run()
        except (InstallFailed, OSError) as error:
            self._error = str(error)
            on_end(self)
        else:
            self._start(on_end)

    def _start(self, on_end: OnEnd) -> None:
        body = self.node.component.body
        assert isinstance(body, PythonFunction)
        try:
            self._files.write_inputs()
            arguments = (os.fspath(self._files.directory), body.function)
            command = (*self._workers.command(self._python), *arguments)
            message = "\0".join(arguments).encode()
            with self._workers.lock:
                if self._stopped:
                    raise ValueError(STOPPED)
                self._session, self._task = self._workers.send(
                    self._python,
                    self._variables,
                    lambda worker, new: worker.send(
                        message,
                        command,
                        lambda _: on_end(self),
                        heard=self._files.on_output,
                        name=self._files.name,
                        may_be_stale=new,
                    ),
                )
        except (ClewError, OSError, ValueError) as error:
            self._error = error.message if isinstance(error, ClewError) else f"{error}"
            on_end(self)

    def stop(self, number: int) -> None:
        self._stopped = True
        if self._builder is not None:
            self._builder.stop(number)
        if self._task is not None:
            self._task.stop(number)

    def result(self) -> TaskResult:
        if self._task is None:
            return TaskResult(error=self._error)
        if self._task.lost:
            return TaskResult(
                error="its end is unknown: its worker was killed, or the disk is full"
            )
        if status := self._task.status:
            return TaskResult(error=explain_failure(status, self._read_output(self._task)))
        return self._files.read_result()

    @staticmethod
    def _read_output(task: ForkedTask) -> str:
        task.output.finished.wait(_OUTPUT_SECONDS)
        with task.output.capture.path.open("rb") as file:
            return read_tail(file)

    @property
    def execution(self) -> Uid | None:
        return self._task.uid if self._task and not self._task.lost else None

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        if self._session is None or self._task is None or self._task.lost:
            return None, []
        return self._session, self._session.events(self._task)

"""A task as its own recorded process: a command on this machine, or a container's client."""

import errno
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.spec.ir import Command
from clew.pipelines.tasks.attempt import STOPPED, AttemptOnThisMachine, OnEnd, OnOutput, TaskFiles
from clew.pipelines.tasks.containers.runtime import ContainerRuntime
from clew.pipelines.tasks.failure_message import explain_failure, read_tail
from clew.pipelines.tasks.worker_pool import create_host
from clew.project_directory import ProjectDirectory
from clew.prov.event_numbers import UNSEEN_CONTAINER
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.run import execution_events
from clew.run.launch.execution_host import LaunchOptions, LocalHost
from clew.run.recorder import CommandRecorder
from clew.run.session.worker_session import WorkerSession
from clew.run.stdio import streams
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.stdio.streams import Streams
from clew.settings import Settings

WRAPPER = Path(__file__).with_name("containers") / "container_wrapper.py"
_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}
_TOO_LONG = "its arguments are too long for a command line: pass a file instead"


class _TaskHost(LocalHost):
    """The host with an empty stdin; the output is captured and not shown."""

    def __init__(
        self, settings: Settings, variables: Mapping[str, str], on_output: OnOutput
    ) -> None:
        super().__init__(settings)
        self._on_output = on_output
        self.environ = create_host(settings, variables).environ
        self._tracer: int | None = None
        self._output: BinaryIO | None = None

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        return {**super().facets(redactor), "streams": _STREAMS}

    def open_streams(
        self, directory: Path, *, redactor: Redactor, limit: int, demand: StdinDemand
    ) -> Streams:
        kept = streams.recreate_streams(
            directory, _STREAMS, redactor=redactor, limit=limit, stdin=None, show=None
        )
        path = kept.kept["stdout"].path
        self._on_output(Uid(directory.name), path)
        self._output = path.open("rb")  # the file is removed once the execution is recorded
        return kept

    def take_output(self) -> str:
        """The end of the output; call once, after the end."""
        if self._output is None:
            return ""
        with self._output as file:
            return read_tail(file)

    def start(self, options: LaunchOptions) -> int:
        self._tracer = super().start(options)
        return self._tracer

    def stop(self, number: int) -> None:
        """Send a signal to all traced processes."""
        for pid in _list_traced(self._tracer) if self._tracer else ():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class ProcessAttempt(AttemptOnThisMachine):
    """A task whose command is recorded like any other execution."""

    def __init__(
        self,
        files: TaskFiles,
        directory: ProjectDirectory,
        settings: Settings,
        variables: Mapping[str, str],
        body: Command,
        fill: Callable[[tuple[str, ...]], list[str]],
    ) -> None:
        """`fill` replaces the placeholders in words of the command."""
        self.node = files.node
        self.place = os.fspath(files.directory)
        self.container: Container | None = None
        self.execution: Uid | None = None
        self._files = files
        self._project = directory
        self._settings = settings
        self._variables = variables
        self._body = body
        self._fill = fill
        self._host: _TaskHost | None = None
        self._stopped = False
        self._result = TaskResult(error="it never started")

    def start(self, on_end: OnEnd) -> None:
        threading.Thread(target=self._run, args=(on_end,), daemon=True).start()

    def stop(self, number: int) -> None:
        self._stopped = True
        if self._host is not None:
            self._host.stop(number)
        if self.container is not None and number == signal.SIGKILL:
            self.container.remove()

    def result(self) -> TaskResult:
        return self._result

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        if self.container is None or self.execution is None:
            return None, []
        why = f"processes inside the image {self.container.image} are not recorded"
        return None, [
            execution_events.build_gap(self.execution, UNSEEN_CONTAINER, "container", why)
        ]

    def _run(self, on_end: OnEnd) -> None:
        try:
            self._result = self._record()
        except ClewError as error:
            self._result = TaskResult(error=error.message)
        except (OSError, BadInput) as error:
            long = isinstance(error, OSError) and error.errno == errno.E2BIG
            self._result = TaskResult(error=_TOO_LONG if long else str(error))
        finally:
            on_end(self)

    def _record(self) -> TaskResult:
        self._files.write_inputs()
        words, arguments = self._fill(self._body.command), self._fill(self._body.arguments)
        command = [*words, *arguments]
        if self.container is not None:
            command = self.container.build_command(self._files, words, arguments)
        self._host = _TaskHost(self._settings, self._variables, self._files.on_output)
        if self._stopped:
            return TaskResult(error=STOPPED)
        try:
            ran = CommandRecorder(
                self._project, self._settings, command, host=self._host, label=self._files.name
            ).record()
        finally:
            output = self._host.take_output()
            if self.container is not None:
                self.container.clear()
        self.execution = ran.execution.uid
        if ran.status:
            return TaskResult(error=explain_failure(ran.status, output))
        return self._files.read_result()


class Container(Struct):
    """The container that a command runs in."""

    runtime: ContainerRuntime
    image: str
    variables: Sequence[str]
    volumes: Sequence[tuple[str, str]]
    """Pairs of a directory and its path in the container."""
    name: str
    outputs: Path
    """The directory that the container writes to; the tracer does not see that, so the wrapper
    copies it."""

    def build_command(
        self, files: TaskFiles, command: Sequence[str], arguments: Sequence[str]
    ) -> list[str]:
        """The command to record: the wrapper around the runtime's client."""
        outputs = self.outputs
        outputs.mkdir(parents=True)
        outputs.chmod(0o777)  # the image may run as any user
        inputs = [path for path in files.input_paths() if os.path.exists(path)]
        client = self.runtime.command(
            self.image,
            name=self.name,
            command=command,
            arguments=arguments,
            variables=self.variables,
            mounts=[
                (os.fspath(outputs), os.fspath(files.directory), True),
                *((path, path, False) for path in inputs),
                *((directory, path, True) for directory, path in self.volumes),
            ],
        )
        plan = {"command": client, "inputs": inputs, "outputs": os.fspath(outputs)}
        (files.directory / "container.json").write_text(json.dumps(plan, ensure_ascii=False))
        return [sys.executable, "-I", "-S", os.fspath(WRAPPER), os.fspath(files.directory)]

    def remove(self) -> None:
        self.runtime.remove(self.name)

    def clear(self) -> None:
        """Remove the outputs, which are copied."""
        shutil.rmtree(self.outputs, ignore_errors=True)


def _list_traced(tracer: int) -> list[int]:
    """All processes of a tracer, also those whose parents have ended."""
    mark = f"\nTracerPid:\t{tracer}\n"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "status").read_text():
                    found.append(int(entry.name))
    return found

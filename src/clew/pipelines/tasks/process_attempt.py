"""A task as a process of its own: a command of this machine, or a container's client."""

from __future__ import annotations

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

from clew.errors import ClewError
from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.runner.live_logs import Heard
from clew.pipelines.tasks.attempt import OnEnd, TaskFiles
from clew.pipelines.tasks.containers.runtime import ContainerRuntime
from clew.pipelines.tasks.failure_message import explain_failure, read_tail
from clew.pipelines.tasks.worker_pool import create_host
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.run import execution_events
from clew.run.launch.execution_backend import LaunchOptions, LocalHost
from clew.run.recorder import Recording
from clew.run.session.worker_session import WorkerSession
from clew.run.stdio import streams
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.stdio.streams import Streams
from clew.settings import Settings

WRAPPER = Path(__file__).with_name("containers") / "wrapper.py"
_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}
_TOO_LONG = "its words are longer than a program may be given: hand over a file instead"

CommandBuilder = Callable[[TaskFiles], Sequence[str]]
"""What a task is called with, once its directory is there."""


class _TaskHost(LocalHost):
    """The host, with nothing to read, and the output only kept."""

    def __init__(self, settings: Settings, variables: Mapping[str, str], heard: Heard) -> None:
        super().__init__(settings)
        self._heard = heard
        self.environ = create_host(settings, variables).environ
        self._tracer: int | None = None
        self._output: BinaryIO | None = None

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        return {**super().facets(redactor), "streams": _STREAMS}

    def prepare(
        self, spool: Path, *, redactor: Redactor, limit: int, demand: StdinDemand
    ) -> Streams:
        kept = streams.recreate_streams(
            spool, _STREAMS, redactor=redactor, limit=limit, stdin=None, show=None
        )
        path = kept.kept["stdout"].path
        self._heard(spool.name, path)
        self._output = path.open("rb")  # the file is removed once the execution is recorded
        return kept

    def take_output(self) -> str:
        """The end of the output; call once, after the end."""
        if self._output is None:
            return ""
        with self._output as file:
            return read_tail(file)

    def start(self, what: LaunchOptions) -> int:
        self._tracer = super().start(what)
        return self._tracer

    def stop(self, number: int) -> None:
        """Send a signal to all that was started."""
        for pid in _list_traced(self._tracer) if self._tracer else ():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class ProcessAttempt:
    """A task whose command is recorded as any other."""

    def __init__(
        self,
        errand: TaskFiles,
        directory: ProjectDirectory,
        settings: Settings,
        variables: Mapping[str, str],
        words: CommandBuilder,
        container: Container | None = None,
    ) -> None:
        self.node = errand.node
        self._errand = errand
        self._directory = directory
        self._settings = settings
        self._variables = variables
        self._words = words
        self._container = container
        self._stage: _TaskHost | None = None
        self._stopped = False
        self._outcome = TaskResult(error="it never began")
        self.execution: str | None = None

    @property
    def place(self) -> Path:
        return self._errand.place

    def start(self, ended: OnEnd) -> None:
        threading.Thread(target=self._run, args=(ended,), daemon=True).start()

    def stop(self, number: int) -> None:
        self._stopped = True
        if self._stage is not None:
            self._stage.stop(number)
        if self._container is not None and number == signal.SIGKILL:
            self._container.remove()

    def outcome(self) -> TaskResult:
        return self._outcome

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        if self._container is None or self.execution is None:
            return None, []
        why = f"what was done in the image {self._container.image} was not seen"
        return None, [execution_events.build_gap(self.execution, 9, "container", why)]

    def _run(self, ended: OnEnd) -> None:
        try:
            self._outcome = self._recorded()
        except ClewError as error:
            self._outcome = TaskResult(error=error.message)
        except (OSError, BadInput) as error:
            long = isinstance(error, OSError) and error.errno == errno.E2BIG
            self._outcome = TaskResult(error=_TOO_LONG if long else str(error))
        finally:
            ended(self)

    def _recorded(self) -> TaskResult:
        self._errand.lay_out()
        command = list(self._words(self._errand))
        if self._container is not None:
            command = self._container.lay_out(self._errand, command)
        self._stage = _TaskHost(self._settings, self._variables, self._errand.heard)
        if self._stopped:
            return TaskResult(error="it was stopped before it began")
        try:
            ran = Recording(
                self._directory, self._settings, command, host=self._stage, label=self._errand.name
            ).run()
        finally:
            output = self._stage.take_output()
            if self._container is not None:
                self._container.clear()
        self.execution = ran.execution["uid"]
        if ran.status:
            return TaskResult(error=explain_failure(ran.status, output))
        return self._errand.outcome()


class Container(Struct):
    """Where a command is run that is not the machine's own."""

    runtime: ContainerRuntime
    image: str
    arguments: CommandBuilder
    """What comes after the command, or alone where the image brings one."""
    variables: Sequence[str]
    volumes: Sequence[tuple[str, str]]
    """Directories, and where they are seen."""
    name: str
    made: Path
    """Where it leaves what it makes, unseen."""

    def lay_out(self, errand: TaskFiles, command: Sequence[str]) -> list[str]:
        """What is to be recorded."""
        made = self.made
        made.mkdir(parents=True)
        made.chmod(0o777)  # an image may have a user of its own
        inputs = [path for path in errand.inputs() if os.path.exists(path)]
        words = self.runtime.command(
            self.image,
            name=self.name,
            command=command,
            arguments=self.arguments(errand),
            variables=self.variables,
            mounts=[
                (os.fspath(made), os.fspath(errand.place), True),
                *((path, path, False) for path in inputs),
                *((directory, path, True) for directory, path in self.volumes),
            ],
        )
        plan = {"command": words, "inputs": inputs, "made": os.fspath(made)}
        (errand.place / "container.json").write_text(json.dumps(plan, ensure_ascii=False))
        return [sys.executable, "-I", "-S", os.fspath(WRAPPER), os.fspath(errand.place)]

    def remove(self) -> None:
        self.runtime.remove(self.name)

    def clear(self) -> None:
        """It has ended."""
        shutil.rmtree(self.made, ignore_errors=True)


def _list_traced(tracer: int) -> list[int]:
    """All processes that the tracer follows: also those whose parents are gone."""
    mark = f"\nTracerPid:\t{tracer}\n"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "status").read_text():
                    found.append(int(entry.name))
    return found

"""One try of one task: what it is given, how it is run, and what it made.

The component's module, and what it is given, are files in the task's own directory: so they are
inputs of a recorded execution, of any size, and the execution can be repeated by itself.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from clew.errors import ClewError
from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.scopes import Artifact, Node, Values
from clew.pipelines.runner.live_logs import Heard
from clew.pipelines.runner.task_reuse import RUNS
from clew.pipelines.spec.ir import PythonFunction
from clew.pipelines.spec.placeholders import artifact_path
from clew.pipelines.spec.values import WrongType, convert, parse_value
from clew.pipelines.tasks.failure_message import explain_failure, read_tail
from clew.pipelines.tasks.venvs import InstallFailed, VenvBuilder
from clew.pipelines.tasks.worker_pool import WorkerPool
from clew.prov.events import AnyEvent
from clew.run.session.forked_task import ForkedTask
from clew.run.session.worker_session import WorkerSession

_OUTPUT_SECONDS = 5.0
"""How long to wait for the end of a failed task's output, which explains the failure."""

OnEnd = Callable[["Attempt"], None]


class Attempt(Protocol):
    """One try of one task; all but `events` is called from one thread."""

    node: Node

    @property
    def place(self) -> Path:
        """The directory of its own."""

    def start(self, ended: OnEnd) -> None:
        """Begin; `ended` is called when it is over, from any thread."""

    def stop(self, number: int) -> None:
        """Send a signal to all that it started."""

    def outcome(self) -> TaskResult:
        """Once it is over."""

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        """What is not told of it yet; from the thread that tells."""

    @property
    def execution(self) -> str | None:
        """The uid of its execution, if there is one."""


class TaskFiles(Struct):
    """The files that a task is given, and leaves, in a directory of its own."""

    node: Node
    place: Path
    """It does not exist yet."""
    heard: Heard
    """Told where its output is kept."""

    @property
    def name(self) -> str:
        """What a reader of the record calls it."""
        return os.fspath(self.place).rpartition(f"/{RUNS}/")[2]

    def lay_out(self) -> None:
        self.place.mkdir(parents=True)
        body = self.node.component.body
        if isinstance(body, PythonFunction):
            (self.place / "component.py").write_text(body.source)
        words = json.dumps(self.executor_input, ensure_ascii=False)
        (self.place / "executor_input.json").write_text(words)

    @property
    def executor_input(self) -> dict[str, Any]:
        inputs, outputs = self.node.inputs, self.node.component.outputs
        return {
            "inputs": {
                "parameterValues": inputs.parameters,
                "artifacts": {n: {"artifacts": found} for n, found in inputs.artifacts.items()},
            },
            "outputs": {
                "parameters": {
                    name: {"outputFile": str(self.place / name)} for name in outputs.parameters
                },
                "artifacts": {
                    name: {"artifacts": [self._made(name)]} for name in outputs.artifacts
                },
                "outputFile": str(self.place / "executor_output.json"),
            },
        }

    def _made(self, name: str) -> Artifact:
        kind = self.node.component.outputs.artifacts[name].type
        return {"name": name, "uri": str(self.place / name), "type": kind, "metadata": {}}

    def outcome(self) -> TaskResult:
        """What it left."""
        file = self.place / "executor_output.json"
        try:
            said = json.loads(file.read_text()) if file.exists() else {}
        except (OSError, ValueError) as error:
            return TaskResult(error=f"its {file.name} cannot be read: {error}")
        parameters = {}
        for name, slot in self.node.component.outputs.parameters.items():
            try:
                if name in said.get("parameterValues", {}):
                    parameters[name] = convert(said["parameterValues"][name], slot.type)
                else:
                    parameters[name] = self._written(name, slot.type)
            except FileNotFoundError:
                return TaskResult(error=f"it gave no value for its output {name}")
            except (WrongType, OSError, UnicodeDecodeError) as error:
                return TaskResult(error=f"its output {name}: {error}")
        artifacts: dict[str, list[Artifact]] = {}
        for name in self.node.component.outputs.artifacts:
            told = said.get("artifacts", {}).get(name, {}).get("artifacts") or [{}]
            artifacts[name] = [{**self._made(name), **one} for one in told]
        return TaskResult(outputs=Values(parameters, artifacts))

    def _written(self, name: str, kind: str) -> Any:
        """What a file of the output's own says."""
        words = (self.place / name).read_text()
        return parse_value(words if kind == "STRING" else words.strip(), kind)

    def inputs(self) -> list[str]:
        """Where the files of its inputs are."""
        found = self.node.inputs.artifacts.values()
        return [path for one in found for path in map(artifact_path, one) if path.startswith("/")]


def find_free_directory(place: Path) -> Path:
    """`place`, or one like it: a pipeline within that is tried again comes by here twice."""
    number, found = 1, place
    while found.exists():
        number += 1
        found = place.with_name(f"{place.name}~{number}")
    return found


class ForkedAttempt:
    """A lightweight component, in a process that a worker forks."""

    def __init__(
        self,
        errand: TaskFiles,
        workers: WorkerPool,
        python: str,
        variables: Mapping[str, str],
        building: VenvBuilder | None = None,
    ) -> None:
        """`building`: of the environment that `python` is in."""
        self.node = errand.node
        self._errand = errand
        self._workers = workers
        self._python = python
        self._variables = variables
        self._building = building
        self._stopped = False
        self._session: WorkerSession | None = None
        self._piece: ForkedTask | None = None
        self._refused: str | None = None

    def start(self, ended: OnEnd) -> None:
        building = self._building
        if building is None or building.venv.built():
            self._start(ended)
        else:
            threading.Thread(target=self._build, args=(building, ended), daemon=True).start()

    def _build(self, building: VenvBuilder, ended: OnEnd) -> None:
        try:
            building.run()
        except (InstallFailed, OSError) as error:
            self._refused = str(error)
            ended(self)
        else:
            self._start(ended)

    def _start(self, ended: OnEnd) -> None:
        body = self.node.component.body
        assert isinstance(body, PythonFunction)
        try:
            self._errand.lay_out()
            words = (os.fspath(self._errand.place), body.function)
            command = (*self._workers.command(self._python), *words)
            message = "\0".join(words).encode()
            with self._workers.lock:
                if self._stopped:
                    raise ValueError("it was stopped before it began")
                self._session = self._workers.ready(self._python, self._variables)
                self._piece = self._session.send(
                    message,
                    command,
                    lambda _: ended(self),
                    heard=self._errand.heard,
                    name=self._errand.name,
                )
        except (ClewError, OSError, ValueError) as error:
            self._refused = error.message if isinstance(error, ClewError) else f"{error}"
            ended(self)

    @property
    def place(self) -> Path:
        return self._errand.place

    def stop(self, number: int) -> None:
        self._stopped = True
        if self._building is not None:
            self._building.stop(number)
        if self._piece is not None:
            self._piece.stop(number)

    def outcome(self) -> TaskResult:
        if self._piece is None:
            return TaskResult(error=self._refused)
        if self._piece.lost:
            return TaskResult(
                error="its end was not seen: its worker was ended, or the disk is full"
            )
        if status := self._piece.status:
            return TaskResult(error=explain_failure(status, self._read_output(self._piece)))
        return self._errand.outcome()

    @staticmethod
    def _read_output(piece: ForkedTask) -> str:
        piece.output.finished.wait(_OUTPUT_SECONDS)
        with piece.output.capture.path.open("rb") as file:
            return read_tail(file)

    @property
    def execution(self) -> str | None:
        return self._piece.uid if self._piece and not self._piece.lost else None

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        if self._session is None or self._piece is None or self._piece.lost:
            return None, []
        return self._session, self._session.events(self._piece)

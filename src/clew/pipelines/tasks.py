"""One task as a witnessed process of this machine.

The component's module, and what it is given, are files in the task's own folder: so they are
inputs of a recorded execution, of any size, and the execution can be repeated by itself.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.errors import ClewError
from clew.folder import Folder
from clew.pipelines.engine import Outcome
from clew.pipelines.ir import PythonFunction
from clew.pipelines.resolving import filled
from clew.pipelines.scopes import Artifact, Node, Values
from clew.pipelines.values import WrongType, typed
from clew.run import streams
from clew.run.executing import record
from clew.run.interest import Interest
from clew.run.stages import Host, Start
from clew.run.streams import Streams
from clew.settings import Settings
from clew.witness.secrets import Redactor

LAUNCHER = """\
\"\"\"Runs the function of a component with the executor of the kfp SDK. Its input is read from a
file: the kernel limits how long an argument may be.\"\"\"

import os
import sys

from kfp.dsl.executor_main import executor_main

folder, function = sys.argv[1:]
sys.path[0] = os.getcwd()
with open(os.path.join(folder, "executor_input.json")) as file:
    given = file.read()
sys.argv[1:] = ["--component_module_path", os.path.join(folder, "component.py")]
sys.argv += ["--function_to_execute", function, "--executor_input", given]
executor_main()
"""
"""What a task's process begins with: a file of the run, so that a repeat has it too."""

_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}


class TaskStage(Host):
    """The host, with variables of the task's own, nothing to read, and its output only kept."""

    def __init__(self, settings: Settings, cache: Path, variables: Mapping[str, str]) -> None:
        super().__init__(settings, cache)
        self.environ = {**self.environ, "_KFP_RUNTIME": "true", **variables}
        self._tracer: int | None = None

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        return {**super().facets(redactor), "streams": _STREAMS}

    def prepare(
        self, spool: Path, *, redactor: Redactor, limit: int, interest: Interest
    ) -> Streams:
        return streams.again(spool, _STREAMS, redactor=redactor, limit=limit, stdin=None, show=None)

    def start(self, what: Start) -> int:
        started = super().start(what)
        self._tracer = started
        return started

    def stop(self, number: int) -> None:
        """Send a signal to all that the task started."""
        for pid in _traced(self._tracer) if self._tracer else ():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@dataclass
class Attempt:
    """One try of one task; `run` may be called from any thread, `stop` from any other."""

    folder: Folder
    settings: Settings
    python: str
    launcher: Path
    place: Path
    """The task's own folder, which does not exist yet."""
    node: Node
    facts: Mapping[str, str]
    execution: dict[str, Any] = field(default_factory=dict)
    """What was recorded, once it ran."""
    _stage: TaskStage | None = None
    _stopped: bool = False

    def run(self) -> Outcome:
        try:
            return self._run()
        except ClewError as error:
            return Outcome(error=error.message)
        except (OSError, ValueError) as error:
            return Outcome(error=f"{type(error).__name__}: {error}")

    def stop(self, number: int = signal.SIGTERM) -> None:
        self._stopped = True
        if self._stage is not None:
            self._stage.stop(number)

    def _run(self) -> Outcome:
        body = self.node.component.body
        assert isinstance(body, PythonFunction)
        self.place.mkdir(parents=True)
        (self.place / "component.py").write_text(body.source)
        wanted = self._executor_input()
        given = json.dumps(wanted, ensure_ascii=False, indent=1)
        (self.place / "executor_input.json").write_text(given)
        variables = {
            name: str(filled(value, self.node.inputs, self.node, self.facts))
            for name, value in body.environment.items()
        }
        self._stage = TaskStage(self.settings, self.folder.cache, variables)
        if self._stopped:
            return Outcome(error="stopped before it began")
        command = [self.python, str(self.launcher), str(self.place), body.function]
        outcome = record(self.folder, self.settings, command, stage=self._stage)
        self.execution = outcome.execution
        if outcome.status:
            return Outcome(error=self._failure(outcome.status))
        return self._outputs(wanted)

    def _failure(self, status: int) -> str:
        how = f"signal {status - 128}" if status > 128 else f"status {status}"
        return f"{self.execution.get('id')} ended with {how}"

    def _executor_input(self) -> dict[str, Any]:
        inputs, outputs = self.node.inputs, self.node.component.outputs
        made = {
            name: {
                "artifacts": [
                    {
                        "name": name,
                        "uri": str(self.place / name),
                        "type": slot.type,
                        "metadata": {},
                    }
                ]
            }
            for name, slot in outputs.artifacts.items()
        }
        return {
            "inputs": {
                "parameterValues": inputs.parameters,
                "artifacts": {n: {"artifacts": found} for n, found in inputs.artifacts.items()},
            },
            "outputs": {
                "parameters": {
                    name: {"outputFile": str(self.place / name)} for name in outputs.parameters
                },
                "artifacts": made,
                "outputFile": str(self.place / "executor_output.json"),
            },
        }

    def _outputs(self, wanted: dict[str, Any]) -> Outcome:
        file = Path(wanted["outputs"]["outputFile"])
        said = json.loads(file.read_text()) if file.exists() else {}
        parameters = {}
        for name, slot in self.node.component.outputs.parameters.items():
            if name not in said.get("parameterValues", {}):
                return Outcome(error=f"it gave no value for its output {name}")
            try:
                parameters[name] = typed(said["parameterValues"][name], slot.type)
            except WrongType as error:
                return Outcome(error=f"its output {name}: {error}")
        artifacts: dict[str, list[Artifact]] = {}
        for name, slot_input in wanted["outputs"]["artifacts"].items():
            told = said.get("artifacts", {}).get(name, {}).get("artifacts") or [{}]
            first = slot_input["artifacts"][0]
            artifacts[name] = [{**first, **one} for one in told]
        return Outcome(outputs=Values(parameters, artifacts))


def _traced(tracer: int) -> list[int]:
    """All processes that the tracer follows: also those whose parents are gone."""
    mark = f"\nTracerPid:\t{tracer}\n"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "status").read_text():
                    found.append(int(entry.name))
    return found

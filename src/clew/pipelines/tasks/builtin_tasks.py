"""Tasks for which nothing runs: a volume is made or deleted, an import is copied."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.input_resolution import BadInput, import_artifact
from clew.pipelines.engine.scopes import Node, Values
from clew.pipelines.spec.ir import Importer, VolumeClaim
from clew.pipelines.tasks.attempt import OnEnd
from clew.pipelines.tasks.volumes import VolumeError, Volumes
from clew.prov.events import AnyEvent
from clew.run.session.worker_session import WorkerSession


def is_builtin(node: Node) -> bool:
    return isinstance(node.component.body, VolumeClaim | Importer)


class BuiltinAttempt:
    """One of them, in a thread: what is copied may be large."""

    execution = None

    def __init__(self, node: Node, place: Path, volumes: Volumes, facts: Mapping[str, str]) -> None:
        self.node = node
        self._place = place
        self._volumes = volumes
        self._facts = facts
        self._outcome: TaskResult | None = None
        self._told = threading.Lock()

    @property
    def place(self) -> Path:
        return self._place

    def start(self, ended: OnEnd) -> None:
        self._ended = ended
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            self._end(TaskResult(outputs=self._do()))
        except (VolumeError, BadInput, OSError) as error:
            self._end(TaskResult(error=str(error)))

    def _end(self, outcome: TaskResult) -> None:
        with self._told:
            if self._outcome is None:
                self._outcome = outcome
                self._ended(self)

    def stop(self, number: int) -> None:
        """Whatever the thread still does, nobody waits for it."""
        self._end(TaskResult(error="it was stopped"))

    def outcome(self) -> TaskResult:
        assert self._outcome is not None
        return self._outcome

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        return None, []

    def _do(self) -> Values:
        body = self.node.component.body
        if isinstance(body, Importer):
            return self._copied()
        assert isinstance(body, VolumeClaim)
        given = self.node.inputs.parameters
        if body.delete:
            self._volumes.delete(str(given["pvc_name"]))
            return Values()
        if given.get("data_source"):
            raise VolumeError("a volume is not made from another one here")
        name = str(given.get("pvc_name") or "")
        if not name:
            suffix = str(given.get("pvc_name_suffix") or "")
            name = f"{self._facts['pipeline_job_name']}-{suffix.lstrip('-')}"
        self._volumes.create(name)
        return Values({"name": name})

    def _copied(self) -> Values:
        """What is imported, in the directory that the tasks share: there they may change it."""
        found = import_artifact(self.node, self.node.named_inputs, self._facts)
        (artifact,) = found.artifacts["artifact"]
        source = Path(str(artifact["uri"]).removeprefix("file://"))
        if not source.is_absolute():
            raise BadInput(f"{artifact['uri']} is not on this machine: a task can fetch it")
        target = Path(self._facts["workspace_path"]) / ".artifacts" / self.node.path / source.name
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
        return Values(artifacts={"artifact": [{**artifact, "uri": str(target)}]})

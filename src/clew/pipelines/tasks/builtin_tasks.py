"""Tasks without a process: create or delete a volume, copy an imported artifact."""

import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.input_resolution import BadInput, import_artifact
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.ir import Importer, VolumeClaim
from clew.pipelines.spec.values import Values
from clew.pipelines.tasks.attempt import AttemptOnThisMachine, OnEnd
from clew.pipelines.tasks.volumes import VolumeError, Volumes
from clew.prov.events import AnyEvent
from clew.run.session.worker_session import WorkerSession


def is_builtin(node: Node) -> bool:
    return isinstance(node.component.body, VolumeClaim | Importer)


class BuiltinAttempt(AttemptOnThisMachine):
    """One of them, in a thread, since copying may take long."""

    execution = None

    def __init__(
        self, node: Node, directory: Path, volumes: Volumes, facts: Mapping[str, str]
    ) -> None:
        self.node = node
        self.place = os.fspath(directory)
        self._volumes = volumes
        self._facts = facts
        self._result: TaskResult | None = None
        self._lock = threading.Lock()

    def start(self, on_end: OnEnd) -> None:
        self._on_end = on_end
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        try:
            self._end(TaskResult(outputs=self._perform()))
        except (VolumeError, BadInput, OSError) as error:
            self._end(TaskResult(error=str(error)))

    def _end(self, result: TaskResult) -> None:
        with self._lock:
            if self._result is None:
                self._result = result
                self._on_end(self)

    def stop(self, number: int) -> None:
        """End at once; the thread may still copy, but its result is ignored."""
        self._end(TaskResult(error="it was stopped"))

    def result(self) -> TaskResult:
        assert self._result is not None
        return self._result

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        return None, []

    def _perform(self) -> Values:
        body = self.node.component.body
        if isinstance(body, Importer):
            return self._copy_import()
        assert isinstance(body, VolumeClaim)
        parameters = self.node.inputs.parameters
        if body.delete:
            self._volumes.delete(str(parameters["pvc_name"]))
            return Values()
        if parameters.get("data_source"):
            raise VolumeError("creating a volume from another one is not supported here")
        name = str(parameters.get("pvc_name") or "")
        if not name:
            suffix = str(parameters.get("pvc_name_suffix") or "")
            name = f"{self._facts['pipeline_job_name']}-{suffix.lstrip('-')}"
        self._volumes.create(name)
        return Values({"name": name})

    def _copy_import(self) -> Values:
        """Copy the artifact to the workspace, where tasks may change it."""
        imported = import_artifact(self.node, self.node.named_inputs, self._facts)
        (artifact,) = imported.artifacts["artifact"]
        source = Path(str(artifact["uri"]).removeprefix("file://"))
        if not source.is_absolute():
            raise BadInput(f"{artifact['uri']} is not on this machine; let a task fetch it")
        target = Path(self._facts["workspace_path"]) / ".artifacts" / self.node.path / source.name
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copyfile(source, target)
        return Values(artifacts={"artifact": [{**artifact, "uri": str(target)}]})

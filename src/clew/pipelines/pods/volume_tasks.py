"""Tasks that create or delete a claim, and the claim that the tasks of a run share."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.kube.backend.rest_client import RestClient
from clew.kube.tasks.volume_claims import TaskClaim, create_claim, delete_claim
from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.ir import Pipeline, VolumeClaim
from clew.pipelines.spec.values import Values
from clew.pipelines.tasks.attempt import OnEnd
from clew.prov.events import AnyEvent
from clew.run.session.worker_session import WorkerSession

_DEFAULT_SIZE = "5Gi"
_DEFAULT_MODES = ("ReadWriteOnce",)


class VolumeAttempt:
    """See `tasks.attempt.Attempt`. No Pod runs for it, and it has no execution."""

    execution = None
    facets: Mapping[str, Any] = {}
    note = None

    def __init__(
        self,
        node: Node,
        client: RestClient,
        namespace: str,
        run: Uid,
        facts: Mapping[str, str],
        submit: Callable[[Callable[[], None]], None],
    ) -> None:
        self.node = node
        self.place = ""
        self._client = client
        self._namespace = namespace
        self._run = run
        self._facts = facts
        self._submit = submit
        self._result = TaskResult(error="it never started")

    def start(self, on_end: OnEnd) -> None:
        self._on_end = on_end
        self._submit(self._work)

    def stop(self, number: int) -> None:
        """It is one request, which ends soon."""

    def result(self) -> TaskResult:
        return self._result

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        return None, []

    def discard(self) -> None:
        """Nothing is left."""

    def _work(self) -> None:
        try:
            self._result = TaskResult(outputs=self._perform())
        except ClewError as error:
            self._result = TaskResult(error=error.message)
        except (KeyError, TypeError, ValueError) as error:
            self._result = TaskResult(error=f"its parameters: {error}")
        finally:
            self._on_end(self)

    def _perform(self) -> Values:
        body, parameters = self.node.component.body, self.node.inputs.parameters
        assert isinstance(body, VolumeClaim)
        if body.delete:
            delete_claim(self._client, self._namespace, str(parameters["pvc_name"]))
            return Values()
        claim = build_task_claim(self.node, self._namespace, self._run, self._facts)
        create_claim(self._client, claim)
        return Values({"name": claim.name})


def build_task_claim(node: Node, namespace: str, run: Uid, facts: Mapping[str, str]) -> TaskClaim:
    """The claim that a CreatePVC task asks for."""
    parameters = node.inputs.parameters
    name = str(parameters.get("pvc_name") or "")
    if not name:
        suffix = str(parameters.get("pvc_name_suffix") or "")
        name = f"{facts['pipeline_job_name']}-{suffix.lstrip('-')}"
    return TaskClaim(
        name=name,
        namespace=namespace,
        run=run,
        task=node.path,
        size=str(parameters.get("size") or _DEFAULT_SIZE),
        access_modes=tuple(parameters.get("access_modes") or _DEFAULT_MODES),
        storage_class=parameters.get("storage_class_name"),
        volume=str(parameters.get("volume_name") or ""),
        annotations=parameters.get("annotations") or {},
        data_source=parameters.get("data_source") or {},
    )


def workspace_claim(pipeline: Pipeline, run: Uid, namespace: str) -> TaskClaim | None:
    """The claim that the tasks of a run share; None if the pipeline has no workspace."""
    if not pipeline.workspace:
        return None
    settings = pipeline.workspace_settings
    patch = settings.get("kubernetes", {}).get("pvcSpecPatch") or {}
    if isinstance(patch, str):
        patch = json.loads(patch)
    return TaskClaim(
        name=f"clew-workspace-{run[:16]}",
        namespace=namespace,
        run=run,
        task="",
        size=str(settings.get("size") or _DEFAULT_SIZE),
        access_modes=tuple(patch.get("accessModes") or _DEFAULT_MODES),
        storage_class=patch.get("storageClassName"),
    )

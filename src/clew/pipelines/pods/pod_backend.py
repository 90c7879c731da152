"""The tasks of a run as Pods of a cluster."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from clew.errors import ClewError, NotAllowed, NotFound, UsageError
from clew.kube.backend.rest_client import RestClient
from clew.kube.objects import Key, name_of
from clew.kube.tasks.pod_runner import PodRunner
from clew.kube.tasks.task_pod import RUN_LABEL
from clew.kube.tasks.volume_claims import create_claim, delete_claim
from clew.pipelines.engine.engine import StartTask
from clew.pipelines.engine.resources import Capacity
from clew.pipelines.engine.run_state import Node
from clew.pipelines.pods.artifact_store import SECRET, ArtifactStore
from clew.pipelines.pods.pod_attempt import PodAttempt, PodContext, list_pod_names
from clew.pipelines.pods.result_watch import ResultWatch
from clew.pipelines.pods.reuse import pod_reuse
from clew.pipelines.pods.reuse.image_reuse import ImageReuse, ImageTask
from clew.pipelines.pods.task_pod_builder import WORKSPACE, image_of
from clew.pipelines.pods.volume_tasks import VolumeAttempt, workspace_claim
from clew.pipelines.runner.run_loop import MakeBackend
from clew.pipelines.runner.run_placeholders import placeholder_values
from clew.pipelines.runner.run_types import ClusterOptions, PipelineRun, RunContext, RunOptions
from clew.pipelines.runner.task_reuse import TaskReuse, Verdict
from clew.pipelines.runner.unchanged_check import LocalArtifacts
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Command, Importer, Pipeline, PythonFunction, VolumeClaim
from clew.pipelines.tasks.attempt import Attempt, OnOutput
from clew.pipelines.tasks.attempt_factory import build_environment
from clew.pipelines.tasks.volumes import TaskEnvironment
from clew.run.session.worker_session import WorkerSession

MAX_PODS = 100
"""Pods at the same time, unless the user sets another limit: the cluster may queue as many."""
_THREADS = 16
_UNLIMITED = float(2**62)
"""The scheduler of the cluster decides whether a Pod fits."""


def prepare_pods(run: PipelineRun, options: RunOptions, cluster: ClusterOptions) -> MakeBackend:
    """Check that a pipeline can run on the cluster, before it starts."""
    check_runnable(run.pipeline)
    client = RestClient()
    try:
        client.list("Pod", cluster.namespace, labels={RUN_LABEL: "none"})
        _check_secret(client, cluster.namespace)
    except ClewError:
        client.close()
        raise
    return lambda context: PodBackend(context, run, options, cluster, client)


def _check_secret(client: RestClient, namespace: str) -> None:
    """Refuse early what would keep every Pod waiting, where the caller may see it."""
    try:
        client.get(Key("Secret", namespace, SECRET))
    except NotFound as error:
        raise UsageError(
            f"the namespace {namespace} has no Secret {SECRET}, with which Pods reach the bucket",
            hint=f"kubectl create secret generic {SECRET} --namespace {namespace}"
            " --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…",
        ) from error
    except NotAllowed:
        return


def check_runnable(pipeline: Pipeline) -> None:
    for component in pipeline.components.values():
        body = component.body
        if isinstance(body, Command) and not body.command:
            raise InvalidPipeline(
                f"{body.location}.command: only the image {body.image} knows what to run",
                hint="give the component a command",
            )
        if isinstance(body, Importer) and body.to_workspace:
            raise InvalidPipeline(
                f"{component.name}: an artifact cannot be imported into the workspace on a cluster",
                hint="import it without download_to_workspace",
            )


class PodBackend:
    """See `TaskBackend`."""

    def __init__(
        self,
        context: RunContext,
        run: PipelineRun,
        options: RunOptions,
        cluster: ClusterOptions,
        client: RestClient,
    ) -> None:
        root = f"{cluster.artifacts.rstrip('/')}/{context.uid}"
        name = run.pipeline.name
        self.facts = {
            **placeholder_values(name, context, root=root, workspace=WORKSPACE),
            **run.facts,
        }
        self.capacity = Capacity(
            cores=_UNLIMITED,
            memory=_UNLIMITED,
            gpus=2**31,
            max_tasks=options.jobs or MAX_PODS,
        )
        self._run = run
        self._client = client
        self._namespace = cluster.namespace
        self._uid = context.uid
        self._numbers = Counter(dict(run.resumed.attempts) if run.resumed else {})
        self._workspace = workspace_claim(run.pipeline, context.uid, cluster.namespace)
        self._pool = ThreadPoolExecutor(_THREADS, "clew-attempts")
        self._reuse = TaskReuse(context.directory, context.settings, name, context.uid)
        store = ArtifactStore(context.settings.s3)
        self._images = ImageReuse(self._reuse, LocalArtifacts(self._reuse), store)
        self._digests: dict[str, str] | None = None
        self._runner = PodRunner(client, cluster.namespace, context.uid)
        self._results = ResultWatch(store)
        self._context = PodContext(
            directory=context.directory,
            settings=context.settings,
            store=store,
            runner=self._runner,
            results=self._results,
            running=set(),
            facts=self.facts,
            namespace=cluster.namespace,
            run=context.uid,
            helper_image=cluster.image,
            scheduler=cluster.scheduler,
            workspace=self._workspace.name if self._workspace else "",
            trace=cluster.trace,
            resumed=run.resumed is not None,
            has_pod=self._has_pod,
            submit=self._submit,
            say=options.say,
        )

    def begin(self) -> None:
        if self._workspace is not None:
            create_claim(self._client, self._workspace)
        self._remove_recorded_pods()

    def _remove_recorded_pods(self) -> None:
        """Remove Pods of attempts that are in the record: a process that performed this run was
        killed before it removed them."""
        recorded = {
            name
            for path, attempts in self._numbers.items()
            for number in range(1, attempts + 1)
            for name in list_pod_names(self._uid, path, number)
        }
        if not recorded:
            return
        with suppress(ClewError):  # then they stay; the tasks that are left matter more
            for pod in self._client.list("Pod", self._namespace, labels={RUN_LABEL: self._uid}):
                if name_of(pod) in recorded:
                    self._runner.remove(name_of(pod))

    def environment_for(
        self, node: Node, attempt: int, facts: Mapping[str, str]
    ) -> TaskEnvironment:
        return TaskEnvironment()

    def decide(self, node: Node, given: TaskEnvironment, *, reuse: bool) -> Verdict:
        body, platform = node.component.body, node.component.platform
        assert isinstance(body, Command | PythonFunction)
        image = image_of(node, self.facts)
        hidden = bool(platform.env_vars or platform.mounts or platform.fields or self._workspace)

        task = ImageTask(
            node,
            image,
            build_environment(body.environment, node, self.facts),
            lambda then: pod_reuse.check_image(image, then, self._image_digests),
        )
        place = f"{self.facts['pipeline_root']}/{node.path}/reused"
        verdict = self._images.decide(
            task, lambda done: self._images.upload(done, place), reuse=reuse and not hidden
        )
        if hidden:
            return replace(
                verdict, why="its volumes, secrets and Pod fields may differ from before"
            )
        return verdict

    def create(self, task: StartTask, given: TaskEnvironment, on_output: OnOutput) -> Attempt:
        node = task.node
        body = node.component.body
        if isinstance(body, VolumeClaim):
            return VolumeAttempt(
                node, self._client, self._namespace, self._uid, self.facts, self._submit
            )
        self._numbers[node.path] += 1
        return PodAttempt(self._context, node, self._numbers[node.path], on_output)

    def deadline_of(self, node: Node) -> int | None:
        return None  # Kubernetes counts it, from the start of the Pod

    def attempt_ended(self, attempt: Attempt) -> list[WorkerSession]:
        return []

    def check(self) -> None:
        """Pods are watched."""

    def end(self) -> list[WorkerSession]:
        return []

    def close(self) -> None:
        self._results.close()
        self._pool.shutdown()
        self._runner.close()
        if self._workspace is not None:
            delete_claim(self._client, self._namespace, self._workspace.name)
        self._client.close()
        self._reuse.close()

    def _submit(self, work: Callable[[], None]) -> None:
        self._pool.submit(work)

    def _has_pod(self, name: str) -> bool:
        try:
            self._client.get(Key("Pod", self._namespace, name))
        except NotFound:
            return False
        return True

    def _image_digests(self) -> Mapping[str, str]:
        """Once for a run: a task that is not reused runs with the image of now."""
        if self._digests is None:
            try:
                self._digests = pod_reuse.read_digests(self._list_nodes())
            except ClewError:  # no right to list nodes
                self._digests = {}
        return self._digests

    def _list_nodes(self) -> list[Any]:
        return list(self._client.list("Node"))

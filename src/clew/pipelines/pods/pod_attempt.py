"""One attempt of a task as a Pod.

Its name and its place in the store follow from the run, the task and the number of the attempt. So
if the process that performs the run is killed, the one that resumes it finds the Pod that runs, or
the result of the one that has ended, and the task does not run twice.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from blake3 import blake3
from msgspec import Struct

from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.kube.tasks.outcome import PodOutcome, describe_status
from clew.kube.tasks.pod_follower import RUNS
from clew.kube.tasks.pod_runner import PodRunner
from clew.kube.tasks.task_pod import TaskPod, pod_name
from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.engine.run_state import Node
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import SCHEME, ArtifactStore
from clew.pipelines.pods.attempt_content import keep_and_build_events
from clew.pipelines.pods.execution_events import PodRecord
from clew.pipelines.pods.result_watch import ResultWatch
from clew.pipelines.pods.task_documents import ComponentCall, TaskPlan
from clew.pipelines.pods.task_pod_builder import TaskPlace, build_pod
from clew.pipelines.pods.witnessed_processes import TracedTask
from clew.pipelines.spec.ir import PythonFunction
from clew.pipelines.tasks.attempt import STOPPED, OnEnd, OnOutput
from clew.pipelines.tasks.executor_files import build_executor_input, read_outputs
from clew.pipelines.tasks.failure_message import explain_failure, read_tail
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.run.session.worker_session import WorkerSession
from clew.settings import Settings
from clew.store import Store
from clew.witness import environment

TRACE_ANNOTATION = "clew.dev/trace"
"""Of a Pod; with the value `OFF`, its processes are not recorded."""
OFF = "off"
MAX_PODS = 3
"""Pods of one attempt: another one is started when the cluster, not the task, ended one."""
_GRACE_SECONDS = 1
_DESCRIPTION_SECONDS = 30.0
"""How long after its result a Pod may take to end before it is recorded without its end."""


class PodContext(Struct, frozen=True):
    """What the attempts of one run have in common."""

    directory: ProjectDirectory
    settings: Settings
    store: ArtifactStore
    runner: PodRunner
    results: ResultWatch
    running: set[Uid]
    """The executions of all attempts whose Pods have not ended."""
    facts: Mapping[str, str]
    namespace: str
    run: Uid
    helper_image: str
    scheduler: str
    workspace: str
    trace: bool
    """Whether the processes in the Pods are recorded, unless a task refuses."""
    resumed: bool
    """The run was begun by another process, whose Pods may still run."""
    has_pod: Callable[[str], bool]
    """Whether a Pod of this name exists."""
    submit: Callable[[Callable[[], None]], None]
    """Runs a function in a thread of a pool."""
    say: Callable[[str], None]


class PodAttempt:
    """See `tasks.attempt.Attempt`."""

    def __init__(self, context: PodContext, node: Node, number: int, on_output: OnOutput) -> None:
        """`number`: of the attempt, among all of the task in the run."""
        self.node = node
        self._context = context
        self._number = number
        self._on_output = on_output
        self.execution = execution_of(context.run, node.path, number)
        self._pods: list[str] = []
        self._stopped = threading.Event()
        self._end_lock = threading.Lock()
        self._described = threading.Event()
        """Set when its Pod has ended, and all is known that is recorded."""
        self._result = TaskResult(error="it never started")
        self._record = PodRecord(
            execution=self.execution,
            name=f"{node.path}@{number}" if number > 1 else node.path,
            agent=environment.find_user_name(os.getuid()),
            namespace=context.namespace,
            began=time.time_ns(),
        )
        self._redactor = Redactor({}, context.settings.redact, key=context.directory.key)
        self._log = context.directory.spool / context.run / f"output-{self.execution}"
        self._pod_number = 1
        self._waited = False
        self._traced: TracedTask | None = None
        self._place = self._place_of(1)

    @property
    def place(self) -> str:
        return self._place.url

    @property
    def facets(self) -> Mapping[str, Any]:
        return self._record.facets

    @property
    def note(self) -> str | None:
        """Why it needed several Pods."""
        whys = [str(one["problem"]) for one in self._record.retries]
        return f"tried again: {'; '.join(whys)}" if whys else None

    def start(self, on_end: OnEnd) -> None:
        self._on_end = on_end
        self._context.running.add(self.execution)
        self._log.touch(mode=0o600)
        self._on_output(self.execution, self._log)
        self._context.submit(self._guard(self._begin))

    def stop(self, number: int) -> None:
        self._stopped.set()
        if self._pods:
            self._context.runner.stop(self._pods[-1], grace_seconds=_GRACE_SECONDS)

    def result(self) -> TaskResult:
        return self._result

    def events(self) -> tuple[WorkerSession | None, list[AnyEvent]]:
        if not self._record.ended:
            return None, []
        self._described.wait(_DESCRIPTION_SECONDS)
        directory = self._context.directory
        with Store(directory.store) as store:
            return None, keep_and_build_events(
                self._record,
                self._log,
                store,
                redactor=self._redactor,
                limit=directory.stream_limit,
                artifacts=self._context.store,
                traced=self._traced,
            )

    def discard(self) -> None:
        for name in self._pods:
            self._context.runner.remove(name)
        self._log.unlink(missing_ok=True)

    # -- in threads of the pool

    def _guard(self, step: Callable[[], None]) -> Callable[[], None]:
        """Whatever goes wrong ends the attempt with an error."""

        def guarded() -> None:
            try:
                step()
            except ClewError as error:
                self._end(TaskResult(error=error.message))
            except (BadInput, OSError) as error:
                self._end(TaskResult(error=str(error)))
            except Exception as error:
                self._end(TaskResult(error=f"{type(error).__name__}: {error}"))
                raise

        return guarded

    def _begin(self, number: int = 1) -> None:
        """Start a Pod, or follow the one that was started before. `number`: of the Pod among those
        of this attempt."""
        if self._stopped.is_set():
            self._end(TaskResult(error=STOPPED))
            return
        context = self._context
        if context.resumed and number == 1:
            number = self._find_last_pod()
        self._pod_number = number
        self._place = place = self._place_of(number)
        executor_input = self._executor_input()
        pod = build_pod(self.node, place, executor_input, context.facts)
        self._describe(pod)
        plan = build_plan(self.node, executor_input, pod, trace=context.trace)
        if plan.trace:
            self._traced = TracedTask(
                place=place.url,
                inputs=plan.inputs,
                mounts=[mount.path for mount in pod.mounts],
                secrets=plan.secrets,
                redact=context.settings.redact,
            )
        if context.resumed and not context.has_pod(pod.name):
            earlier = self._find_earlier_result()
            if earlier is not None:
                self._end(earlier)
                return
        context.store.write(f"{place.url}/{task_documents.PLAN}", task_documents.encode(plan))
        self._pods.append(pod.name)
        context.runner.start(pod, log=self._log, on_end=self._pod_ended, on_progress=self._report)
        self._await_result()
        if self._stopped.is_set():  # in between
            context.runner.stop(pod.name, grace_seconds=_GRACE_SECONDS)

    def _await_result(self) -> None:
        submit, notice = self._context.submit, self._notice_result
        self._context.results.await_result(self._result_url, lambda: submit(notice))

    def _notice_result(self) -> None:
        """End the attempt before its Pod has, if nothing else runs: then all would wait for that.
        Else there would be more Pods than the limits of the run permit. What goes wrong is said
        when the Pod has ended."""
        if len(self._context.running) > 1:
            return
        result = self._read_result()
        if result is not None:
            self._end(result, described=False)

    def _find_last_pod(self) -> int:
        """The number of the last Pod that was started for this attempt; 1 if none was."""
        store = self._context.store
        for number in range(MAX_PODS, 1, -1):
            if store.find(f"{self._place_of(number).url}/{task_documents.PLAN}") is not None:
                return number
        return 1

    def _find_earlier_result(self) -> TaskResult | None:
        """How this attempt ended if its Pod is gone: the process that followed it was killed before
        it could record that. None if it never ran."""
        result = self._read_result()
        if result is not None:
            return result
        following = f"{self._base}/{self._number + 1}/{task_documents.PLAN}"
        if self._context.store.find(following) is not None:
            return TaskResult(error="it failed before the run was resumed")
        return None

    @property
    def _result_url(self) -> str:
        return f"{self.place}/{task_documents.RESULT}"

    @property
    def _base(self) -> str:
        return f"{self._context.facts['pipeline_root']}/{self.node.path}"

    def _place_of(self, pod: int) -> TaskPlace:
        context, suffix = self._context, f"-{pod}" if pod > 1 else ""
        return TaskPlace(
            namespace=context.namespace,
            run=context.run,
            attempt=_number_pod(self._number, pod),
            url=f"{self._base}/{self._number}{suffix}",
            helper_image=context.helper_image,
            scheduler=context.scheduler,
            workspace=context.workspace,
        )

    def _executor_input(self) -> dict[str, Any]:
        return build_executor_input(self.node, self.place, task_documents.data_path(self.place))

    def _describe(self, pod: TaskPod) -> None:
        record, variables = self._record, dict(pod.env)
        self._redactor.learn(variables)
        record.pod, record.image = pod.name, pod.image
        record.environment = self._redactor.environment(variables)
        record.command = self._redactor.arguments([*pod.command, *pod.args]).words

    def _report(self, text: str) -> None:
        """Say what a Pod waits for, and that it runs if it waited."""
        if not text.startswith(RUNS) or self._waited:
            self._context.say(f"{self.node.path}: {text}")
        self._waited = not text.startswith(RUNS)
        if not self._waited:
            self._await_result()

    def _pod_ended(self, outcome: PodOutcome) -> None:
        """Called from the runner's thread."""
        self._context.submit(self._guard(lambda: self._take(outcome)))

    def _take(self, outcome: PodOutcome) -> None:
        self._context.results.forget(self._result_url)
        record = self._record
        record.node, record.image_digest = outcome.node, outcome.image_digest
        record.status, record.placement = outcome.status, outcome.placement
        if record.ended:  # its result was noticed before
            self._set_described()
            return
        if not outcome.status:  # whatever became of the Pod, a result that was stored counts
            result = self._read_result()
            if result is not None:
                self._end(result)
                return
        if outcome.transient and self._pod_number < MAX_PODS and not self._stopped.is_set():
            why = {"pod": record.pod, "node": record.node, "problem": outcome.problem}
            record.retries.append(why)
            self._report(f"{outcome.problem}; it is tried again")
            self._begin(self._pod_number + 1)
            return
        self._end(TaskResult(error=self._explain(outcome)))

    def _explain(self, outcome: PodOutcome) -> str:
        problem, status = outcome.problem, outcome.status
        if problem is None:
            return "it ended, but its outputs are not in the store"
        if status and problem == describe_status(status):
            with self._log.open("rb") as file:
                return explain_failure(status, read_tail(file))
        return problem

    def _read_result(self) -> TaskResult | None:
        """What the task made; None if its Pod stored no result."""
        store = self._context.store
        data = store.read(self._result_url, most=task_documents.MAX_DOCUMENT)
        if data is None:
            return None
        found = task_documents.decode_result(data)
        self._record.inputs = found.inputs
        self._record.left_out = found.left_out
        self._record.outputs = [file for files in found.artifacts.values() for file in files]
        return read_outputs(self.node, self._executor_input(), found.output, found.texts.get)

    def _end(self, result: TaskResult, *, described: bool = True) -> None:
        """The first result counts. `described`: its Pod has ended, too."""
        with self._end_lock:
            first = not self._record.ended
            if first:
                self._result = result
                self._record.ended = time.time_ns()
        if described:
            self._set_described()
        if first:
            self._on_end(self)

    def _set_described(self) -> None:
        self._context.running.discard(self.execution)
        self._described.set()


def list_pod_names(run: str, task: str, attempt: int) -> list[str]:
    """The names of all Pods that an attempt may have had."""
    return [pod_name(run, task, _number_pod(attempt, pod)) for pod in range(1, MAX_PODS + 1)]


def _number_pod(attempt: int, pod: int) -> int:
    """The number of a Pod among all of its task in the run."""
    return attempt * MAX_PODS + pod - 1


def execution_of(run: Uid, task: str, number: int) -> Uid:
    """The uid of the execution of an attempt: the same for every process that performs the run."""
    return Uid(blake3(f"pod\0{run}\0{task}\0{number}".encode()).hexdigest(length=16))


def build_plan(
    node: Node, executor_input: dict[str, Any], pod: TaskPod, *, trace: bool
) -> TaskPlan:
    body, outputs = node.component.body, node.component.outputs
    reserved = task_documents.RESERVED.intersection((*outputs.artifacts, *outputs.parameters))
    if reserved:
        raise BadInput(f"its output may not be named {min(reserved)}")
    call = None
    if isinstance(body, PythonFunction):
        call = ComponentCall(body.source, body.function, body.installs)
    lists = node.inputs.artifacts.values()
    urls = (str(artifact["uri"]) for artifacts in lists for artifact in artifacts)
    return TaskPlan(
        inputs=tuple(dict.fromkeys(url for url in urls if url.startswith(SCHEME))),
        executor_input=executor_input,
        parameters=tuple(outputs.parameters),
        artifacts=tuple(outputs.artifacts),
        call=call,
        trace=trace and pod.annotations.get(TRACE_ANNOTATION) != OFF,
        secrets=tuple(one.name for one in pod.key_variables if one.kind == "secret"),
    )

"""The tasks of a run as processes and containers of this machine."""

import os
from collections.abc import Mapping

from clew.pipelines.engine.engine import StartTask
from clew.pipelines.engine.run_state import Node
from clew.pipelines.run_directory import WORKSPACE
from clew.pipelines.runner.run_placeholders import placeholder_values
from clew.pipelines.runner.run_types import PipelineRun, RunContext, RunOptions
from clew.pipelines.runner.task_reuse import TaskReuse, Verdict
from clew.pipelines.runner.unchanged_check import LocalArtifacts
from clew.pipelines.tasks import machine_resources
from clew.pipelines.tasks.attempt import Attempt, OnOutput, TaskFiles, find_free_directory
from clew.pipelines.tasks.attempt_factory import AttemptFactory
from clew.pipelines.tasks.builtin_tasks import BuiltinAttempt, is_builtin
from clew.pipelines.tasks.platform_mapping import PlatformMapping
from clew.pipelines.tasks.volumes import MountPoints, TaskEnvironment, Volumes
from clew.pipelines.tasks.worker_pool import WorkerPool
from clew.run.session.worker_session import WorkerSession


class LocalBackend:
    """See `TaskBackend`."""

    def __init__(
        self,
        context: RunContext,
        *,
        run: PipelineRun,
        options: RunOptions,
        python: str,
        mapped: PlatformMapping,
        workers: WorkerPool,
    ) -> None:
        pipeline, directory, settings = run.pipeline, context.directory, context.settings
        self._run = run
        self._directory = context.run_directory
        root, workspace = os.fspath(self._directory), os.fspath(self._directory / WORKSPACE)
        self.facts = {
            **placeholder_values(pipeline.name, context, root=root, workspace=workspace),
            **run.facts,
        }
        components = pipeline.components.values()
        gpus = any(component.resources.accelerators is not None for component in components)
        self.capacity = machine_resources.measure_capacity(options.jobs, gpus=gpus)
        self._pipeline_url = run.file.resolve().as_uri() if run.file.is_file() else None
        self._workers = workers
        self._attempts = AttemptFactory(
            directory,
            settings,
            python,
            self.facts,
            workers,
            on_host=options.on_host,
            say=options.say,
        )
        self._volumes = Volumes(mapped, directory, self._directory, context.uid)
        self._reuse = TaskReuse(directory, settings, pipeline.name, context.uid)
        self._artifacts = LocalArtifacts(self._reuse)
        self._mounts: dict[str, MountPoints] = {}  # by the path of a running task

    def begin(self) -> None:
        if self._run.pipeline.workspace:
            (self._directory / WORKSPACE).mkdir(parents=True, exist_ok=True)

    def environment_for(
        self, node: Node, attempt: int, facts: Mapping[str, str]
    ) -> TaskEnvironment:
        return self._volumes.environment_for(node, attempt, facts)

    def decide(self, node: Node, given: TaskEnvironment, *, reuse: bool) -> Verdict:
        image = self._attempts.image_digest(node)
        variables = self._variables(node, given)
        now = self._workers.task_variables(variables)
        verdict = self._reuse.decide(
            node,
            self._artifacts.check_outputs if image else self._artifacts.check_facts(now),
            self._artifacts.identify,
            more={"image": image} if image else {},
            reuse=reuse and not self._has_hidden_effects(image, given),
        )
        if verdict.reused is None:
            self._attempts.prepare(node, variables)
        return verdict

    def create(self, task: StartTask, given: TaskEnvironment, on_output: OnOutput) -> Attempt:
        node = task.node
        if is_builtin(node):
            place = self._directory / node.path
            return BuiltinAttempt(node, place, self._volumes, self.facts)
        variables, image = self._variables(node, given), self._attempts.image_digest(node)
        suffix = f"@{task.attempt}" if task.attempt > 1 else ""
        directory = find_free_directory(self._directory / f"{node.path}{suffix}")
        files = TaskFiles(node, directory, on_output, self._pipeline_url)
        self._mounts[node.path] = self._volumes.mount(given.mount_points, mounted=image is not None)
        return self._attempts.create(files, variables, given.mount_points)

    def deadline_of(self, node: Node) -> int | None:
        return node.component.platform.deadline

    def attempt_ended(self, attempt: Attempt) -> list[WorkerSession]:
        self._artifacts.files_changed()
        self._volumes.unmount(self._mounts.pop(attempt.node.path, frozenset()))
        return self._workers.pop_finished()

    def check(self) -> None:
        self._workers.check_tasks()

    def end(self) -> list[WorkerSession]:
        self._volumes.close()
        return self._workers.release()

    def close(self) -> None:
        self._reuse.close()

    def _variables(self, node: Node, given: TaskEnvironment) -> dict[str, str]:
        return {**self._attempts.variables(node), **given.variables}

    def _has_hidden_effects(self, image: str | None, given: TaskEnvironment) -> bool:
        """Whether the task may read or write what its record does not show: volumes, and what a
        container gets from outside."""
        more = bool(given.mount_points or given.variables or self._run.pipeline.workspace)
        return given.shared or (image is not None and more)

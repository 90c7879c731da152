"""The tasks of a run as processes and containers of this machine."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from clew.pipelines.engine.engine import StartTask
from clew.pipelines.engine.run_state import Node
from clew.pipelines.run_directory import WORKSPACE
from clew.pipelines.runner.run_placeholders import placeholder_values
from clew.pipelines.runner.run_types import PipelineRun, RunContext, RunOptions
from clew.pipelines.runner.task_reuse import TaskReuse, Verdict
from clew.pipelines.runner.unchanged_check import LocalArtifacts
from clew.pipelines.tasks import machine_resources
from clew.pipelines.tasks.attempt import Attempt, OnOutput, TaskFiles, find_free_directory
from clew.pipelines.tasks.attempt_factory import AttemptFactory, TaskImage
from clew.pipelines.tasks.builtin_tasks import BuiltinAttempt, is_builtin
from clew.pipelines.tasks.platform_mapping import PlatformMapping
from clew.pipelines.tasks.volumes import MountPoints, TaskEnvironment, Volumes
from clew.pipelines.tasks.worker_pool import WorkerPool
from clew.prov.queries.pipelines.finished_tasks import FinishedTask
from clew.replay.reuse.reuse_types import ReuseCheck
from clew.run.session.worker_session import WorkerSession

if TYPE_CHECKING:
    from clew.pipelines.pods.reuse.image_reuse import ImageReuse


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
        self._settings = settings
        self._mounts: dict[str, MountPoints] = {}  # by the path of a running task

    def begin(self) -> None:
        if self._run.pipeline.workspace:
            (self._directory / WORKSPACE).mkdir(parents=True, exist_ok=True)

    def environment_for(
        self, node: Node, attempt: int, facts: Mapping[str, str]
    ) -> TaskEnvironment:
        return self._volumes.environment_for(node, attempt, facts)

    def decide(self, node: Node, given: TaskEnvironment, *, reuse: bool) -> Verdict:
        image = self._attempts.find_image(node)
        variables = self._variables(node, given)
        now = self._workers.task_variables(variables)
        allowed = reuse and not self._has_hidden_effects(image, given)
        if image is None:
            check, identify = self._artifacts.check_facts(now), self._artifacts.identify
            verdict = self._reuse.decide(node, check, identify, more={}, reuse=allowed)
        else:
            verdict = self._decide_in_image(node, image, variables, reuse=allowed)
        if verdict.reused is None:
            self._attempts.prepare(node, variables)
        return verdict

    def _decide_in_image(
        self, node: Node, image: TaskImage, variables: Mapping[str, str], *, reuse: bool
    ) -> Verdict:
        from clew.pipelines.pods.reuse.image_reuse import ImageTask  # few tasks run in images here

        def check_image(then: Container[str]) -> ReuseCheck:
            same = any(digest in then for digest in image.digests)
            return ReuseCheck(None, 1) if same else ReuseCheck("its image changed")

        def bring(done: FinishedTask) -> FinishedTask:
            return self._images.download(done, find_free_directory(self._directory / node.path))

        task = ImageTask(node, image.name, variables, check_image)
        return self._images.decide(task, bring, reuse=reuse)

    @cached_property
    def _images(self) -> ImageReuse:
        from clew.pipelines.pods.artifact_store import ArtifactStore
        from clew.pipelines.pods.reuse.image_reuse import ImageReuse

        return ImageReuse(self._reuse, self._artifacts, ArtifactStore(self._settings.s3))

    def create(self, task: StartTask, given: TaskEnvironment, on_output: OnOutput) -> Attempt:
        node = task.node
        if is_builtin(node):
            place = self._directory / node.path
            return BuiltinAttempt(node, place, self._volumes, self.facts)
        variables, image = self._variables(node, given), self._attempts.find_image(node)
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

    def _has_hidden_effects(self, image: TaskImage | None, given: TaskEnvironment) -> bool:
        """Whether the task may read or write what its record does not show: volumes, and what a
        container gets from outside."""
        more = bool(given.mount_points or given.variables or self._run.pipeline.workspace)
        return given.shared or (image is not None and more)

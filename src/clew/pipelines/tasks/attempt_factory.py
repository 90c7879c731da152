"""Create the attempt of each task: forked worker, process or container, with its variables."""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from clew.pipelines.engine.input_resolution import BadInput, fill_placeholders
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.command_words import expand_word, output_placeholders
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Command, Pipeline, PythonFunction
from clew.pipelines.spec.values import Values, to_text
from clew.pipelines.tasks.attempt import Attempt, ForkedAttempt, TaskFiles
from clew.pipelines.tasks.venvs import Venvs
from clew.pipelines.tasks.volumes import MASK_PREFIX, MountPoints
from clew.pipelines.tasks.worker_pool import SDK_VARIABLES, WorkerPool
from clew.project_directory import ProjectDirectory
from clew.run.launch import inherited_env
from clew.settings import Settings

ON_HOST_WARNING = "container components run as processes of this machine, not in their images"


def check_runnable(pipeline: Pipeline, *, on_host: bool) -> tuple[str, ...]:
    """Refuse commands that cannot run here; returns warnings about the others."""
    bodies = [one.body for one in pipeline.components.values() if isinstance(one.body, Command)]
    if not bodies:
        return ()
    from clew.pipelines.tasks.containers.runtime import find_runtime

    hint = "clew pipeline run --on-host runs it as a process of this machine"
    for body in bodies:
        if on_host and not body.command:
            raise InvalidPipeline(
                f"{body.location}.command: only the image {body.image} knows what to run",
                hint="give the component a command",
            )
        if on_host or "{{$" in body.image:
            continue
        runtime = find_runtime()
        if runtime is None:
            raise InvalidPipeline(
                f"{body.location}.image: no container runtime responds here", hint=hint
            )
        if runtime.digest(body.image) is None:
            raise InvalidPipeline(
                f"{body.location}.image: {body.image} is not on this machine", hint=hint
            )
    return (ON_HOST_WARNING,) if on_host else ()


class TaskImage(NamedTuple):
    """The image of a task."""

    name: str
    digests: tuple[str, ...]
    """As `FinishedTask.image_digests`."""


class AttemptFactory:
    """The attempts of one run. `on_host`: use no images; `say` is called for what takes long."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        python: str,
        facts: Mapping[str, str],
        workers: WorkerPool,
        *,
        on_host: bool,
        say: Callable[[str], None],
    ) -> None:
        self._workers = workers
        self._directory = directory
        self._settings = settings
        self._venvs = Venvs(settings.cache, python, say)
        self._python = python
        self._facts = facts
        self._on_host = on_host
        self._digests = cache(self._runtime_digests)
        self._path = inherited_env.restore_caller_environment().get("PATH", os.defpath)

    def variables(self, node: Node) -> dict[str, str]:
        """The variables that a task gets in addition to those of the caller."""
        body = node.component.body
        if isinstance(body, Command):
            variables = build_environment(body.environment, node, self._facts)
            if self._on_host and shutil.which("python3") != self._python:
                return {"PATH": f"{os.path.dirname(self._python)}:{self._path}", **variables}
            return variables
        assert isinstance(body, PythonFunction)
        variables = dict(SDK_VARIABLES)
        if body.installs:
            variables |= self._venvs.venv_for(body.installs).variables(self._path)
        return variables | build_environment(body.environment, node, self._facts)

    def find_image(self, node: Node) -> TaskImage | None:
        """The image that a task runs in, if any."""
        body = node.component.body
        if self._on_host or not isinstance(body, Command):
            return None
        image = resolve_image(body, node, self._facts)
        digests = self._digests(image)
        if not digests:
            raise BadInput(f"the image {image} is not on this machine")
        return TaskImage(image, digests)

    def prepare(self, node: Node, variables: Mapping[str, str]) -> None:
        """Start the worker first, so that its start-up does not count as the task's time."""
        body = node.component.body
        if isinstance(body, PythonFunction) and not body.installs:
            self._workers.prepare(self._python, variables)

    def create(
        self, files: TaskFiles, variables: Mapping[str, str], mounts: MountPoints = frozenset()
    ) -> Attempt:
        body = files.node.component.body
        if isinstance(body, Command):
            return self._create_process(files, body, variables, mounts)
        assert isinstance(body, PythonFunction)
        if not body.installs:
            return ForkedAttempt(files, self._workers, self._python, variables)
        venv = self._venvs.venv_for(body.installs)
        builder = self._venvs.builder_for(venv)
        return ForkedAttempt(files, self._workers, venv.python, variables, builder)

    def _create_process(
        self, files: TaskFiles, body: Command, variables: Mapping[str, str], mounts: MountPoints
    ) -> Attempt:
        from clew.pipelines.tasks.containers.runtime import find_runtime
        from clew.pipelines.tasks.process_attempt import Container, ProcessAttempt

        def fill(templates: tuple[str, ...]) -> list[str]:
            return build_command(templates, files.node, files.executor_input, self._facts)

        attempt = ProcessAttempt(files, self._directory, self._settings, variables, body, fill)
        if self._on_host:
            return attempt
        runtime = find_runtime()
        assert runtime is not None
        name = f"clew-{os.urandom(6).hex()}"
        attempt.container = Container(
            runtime,
            resolve_image(body, files.node, self._facts),
            sorted(name for name in variables if not name.startswith(MASK_PREFIX)),
            sorted((directory, path) for path, directory in {*mounts, *self._workspace()}),
            name,
            self._directory.cache / "containers" / name,
        )
        digests = self._digests(attempt.container.image)
        attempt.facets = {"image_digest": digests[0], "image_digests": digests} if digests else {}
        return attempt

    def _workspace(self) -> MountPoints:
        """The directory that all tasks of the run share, if there is one."""
        path = self._facts.get("workspace_path", "")
        return frozenset([(path, path)]) if os.path.isdir(path) else frozenset()

    @staticmethod
    def _runtime_digests(image: str) -> tuple[str, ...]:
        from clew.pipelines.tasks.containers.runtime import find_runtime

        runtime = find_runtime()
        return runtime.digests(image) if runtime else ()


def build_command(
    templates: Iterable[str],
    node: Node,
    executor_input: Mapping[str, Any],
    facts: Mapping[str, str],
) -> list[str]:
    present = {*node.inputs.parameters, *node.inputs.artifacts}
    inputs, known = fill_defaults(node), {**facts, **output_placeholders(executor_input)}
    return [
        to_text(fill_placeholders(word, inputs, node, known))
        for template in templates
        for word in expand_word(template, present)
    ]


def build_environment(
    environment: Mapping[str, str], node: Node, facts: Mapping[str, str]
) -> dict[str, str]:
    inputs = fill_defaults(node)
    return {
        name: to_text(fill_placeholders(value, inputs, node, facts))
        for name, value in environment.items()
    }


def resolve_image(body: Command, node: Node, facts: Mapping[str, str]) -> str:
    return to_text(fill_placeholders(body.image, fill_defaults(node), node, facts))


def fill_defaults(node: Node) -> Values:
    """All inputs that the task names, and the defaults of the others."""
    slots = node.component.inputs.parameters
    defaults = {name: slot.default for name, slot in slots.items()}
    return Values(
        {**defaults, **node.named_inputs.parameters, **node.inputs.parameters},
        {**node.named_inputs.artifacts, **node.inputs.artifacts},
    )

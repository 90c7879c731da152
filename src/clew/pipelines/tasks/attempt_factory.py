"""How each task is run: what it finds in its environment, and which kind of attempt it gets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache

from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.engine.scopes import Node
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Command, Pipeline, PythonFunction
from clew.pipelines.tasks.attempt import Attempt, ForkedAttempt, TaskFiles
from clew.pipelines.tasks.containers import command
from clew.pipelines.tasks.venvs import Venvs
from clew.pipelines.tasks.volumes import MASK_PREFIX, MountPoints
from clew.pipelines.tasks.worker_pool import SDK_VARIABLES, WorkerPool
from clew.project_directory import ProjectDirectory
from clew.run.launch import inherited_env
from clew.settings import Settings

ON_HOST_WARNING = "container components run as processes of this machine, not in their images"


def check_runnable(pipeline: Pipeline, *, on_host: bool) -> tuple[str, ...]:
    """Refuse commands that could not be run; what is to be said of the others."""
    found = [one.body for one in pipeline.components.values() if isinstance(one.body, Command)]
    if not found:
        return ()
    from clew.pipelines.tasks.containers.runtime import find_runtime

    hint = "clew pipeline run --on-host runs it as a process of this machine"
    for body in found:
        if on_host and not body.command:
            raise InvalidPipeline(
                f"{body.place}.command: only the image {body.image} knows what to run",
                hint="give the component a command",
            )
        if on_host or "{{$" in body.image:
            continue
        here = find_runtime()
        if here is None:
            raise InvalidPipeline(
                f"{body.place}.image: no container runtime answers here", hint=hint
            )
        if here.digest(body.image) is None:
            raise InvalidPipeline(
                f"{body.place}.image: {body.image} is not on this machine", hint=hint
            )
    return (ON_HOST_WARNING,) if on_host else ()


class AttemptFactory:
    """Those of one run. `on_host`: no images are used; `say` is told what takes its time."""

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
        self._digest = cache(self._runtime_digest)
        self._path = inherited_env.caller_environment().get("PATH", os.defpath)

    def variables(self, node: Node) -> dict[str, str]:
        """What a task finds beside the caller's own variables."""
        body = node.component.body
        if isinstance(body, Command):
            own = command.build_environment(body.environment, node, self._facts)
            if self._on_host and shutil.which("python3") != self._python:
                return {"PATH": f"{os.path.dirname(self._python)}:{self._path}", **own}
            return own
        assert isinstance(body, PythonFunction)
        found = dict(SDK_VARIABLES)
        if body.installs:
            found |= self._venvs.of(body.installs).variables(self._path)
        return found | command.build_environment(body.environment, node, self._facts)

    def image(self, node: Node) -> str | None:
        """The digest of the image that a task runs in; None: in none."""
        body = node.component.body
        if self._on_host or not isinstance(body, Command):
            return None
        image = command.resolve_image(body, node, self._facts)
        digest = self._digest(image)
        if digest is None:
            raise BadInput(f"the image {image} is not on this machine")
        return digest

    def prepare(self, node: Node, variables: Mapping[str, str]) -> None:
        """Have ready what a task shares with others: its time is its own."""
        body = node.component.body
        if isinstance(body, PythonFunction) and not body.installs:
            self._workers.prepare(self._python, variables)

    def attempt(
        self, errand: TaskFiles, variables: Mapping[str, str], places: MountPoints = frozenset()
    ) -> Attempt:
        """`places`: paths where the task finds volumes, and the directories that those are."""
        body = errand.node.component.body
        if isinstance(body, Command):
            return self._command(errand, body, variables, places)
        assert isinstance(body, PythonFunction)
        if not body.installs:
            return ForkedAttempt(errand, self._workers, self._python, variables)
        venv = self._venvs.of(body.installs)
        building = self._venvs.building(venv)
        return ForkedAttempt(errand, self._workers, venv.python, variables, building)

    def _command(
        self, errand: TaskFiles, body: Command, variables: Mapping[str, str], places: MountPoints
    ) -> Attempt:
        from clew.pipelines.tasks.containers.runtime import find_runtime
        from clew.pipelines.tasks.process_attempt import Container, ProcessAttempt

        def words(errand: TaskFiles) -> list[str]:
            return self._filled(errand, body.command)

        def arguments(errand: TaskFiles) -> list[str]:
            return self._filled(errand, body.arguments)

        if self._on_host:
            whole = lambda errand: [*words(errand), *arguments(errand)]  # noqa: E731
            return ProcessAttempt(errand, self._directory, self._settings, variables, whole)
        here = find_runtime()
        assert here is not None
        name = f"clew-{os.urandom(6).hex()}"
        container = Container(
            here,
            command.resolve_image(body, errand.node, self._facts),
            arguments,
            sorted(name for name in variables if not name.startswith(MASK_PREFIX)),
            sorted((directory, path) for path, directory in {*places, *self._shared()}),
            name,
            self._directory.cache / "containers" / name,
        )
        return ProcessAttempt(errand, self._directory, self._settings, variables, words, container)

    def _shared(self) -> MountPoints:
        """The directory that all tasks of the run share, if there is one."""
        found = self._facts.get("workspace_path", "")
        return frozenset([(found, found)]) if os.path.isdir(found) else frozenset()

    def _filled(self, errand: TaskFiles, templates: tuple[str, ...]) -> list[str]:
        return command.build_command(templates, errand.node, errand.executor_input, self._facts)

    @staticmethod
    def _runtime_digest(image: str) -> str | None:
        from clew.pipelines.tasks.containers.runtime import find_runtime

        here = find_runtime()
        return here.digest(image) if here else None

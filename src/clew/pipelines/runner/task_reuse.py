"""Decide whether the result of an earlier task can be reused, in two steps.

The static key (code, function, parameters, content of declared inputs, declared outputs) finds
earlier tasks. The first one whose recorded facts all still hold is reused, with its outputs. When
in doubt, the task runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3
from msgspec import Struct, field

from clew import db
from clew.documents.ids import ExecutionId, Uid
from clew.pipelines.engine.run_state import Node
from clew.pipelines.run_directory import RUNS
from clew.pipelines.spec.ir import Command, PythonFunction
from clew.pipelines.spec.placeholders import artifact_path
from clew.pipelines.spec.values import Artifact, Values
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.queries.pipelines.finished_tasks import (
    FinishedTask,
    find_last_task,
    find_tasks_with_key,
    list_runs_of_pipeline,
)
from clew.replay.reuse.reuse_types import ReuseCheck, TaskVariables
from clew.settings import Settings
from clew.store import Store

if TYPE_CHECKING:
    from clew.replay.reuse.task_reuse_check import ReuseChecker

GRAPH_CACHE_MB = 2
"""Small, because a long run writes much more to the graph than it reads again."""

_NEVER_RAN = "it never ran before"


class Verdict(Struct, frozen=True):
    """Whether a task is reused, and why or why not."""

    key: str
    parts: dict[str, Any]
    """What the key is the hash of."""
    why: str
    reused: FinishedTask | None = None
    outputs: Values = field(default_factory=Values)


class TaskReuse:
    """Finds earlier tasks that one run can reuse."""

    def __init__(
        self, directory: ProjectDirectory, settings: Settings, pipeline: str, run: Uid
    ) -> None:
        """`run`: the uid of this run, whose own tasks are not reused."""
        self._run = run
        self._hashes: dict[str, tuple[str, str]] = {}  # of the code and outputs of components
        self._stack = ExitStack()
        opened = db.connect(directory.graph, address=settings.graph, cache=GRAPH_CACHE_MB)
        connection = self._stack.enter_context(opened)
        self._graph = Graph(connection, directory.uid, signers=settings.config)
        self._runs = list_runs_of_pipeline(self._graph, pipeline)
        self._store = self._stack.enter_context(Store(directory.store))

    @cached_property
    def _checker(self) -> ReuseChecker:
        """Loaded when needed: a pipeline that runs for the first time does not wait for it."""
        from clew.replay.reuse.task_reuse_check import ReuseChecker

        return ReuseChecker(self._graph, self._store)

    def close(self) -> None:
        self._stack.close()

    def files_changed(self) -> None:
        """Check files again: a task has run, and may have changed any."""
        if "_checker" in vars(self):
            self._checker.changed()

    def decide(
        self, node: Node, now: TaskVariables, *, image: str | None = None, reuse: bool
    ) -> Verdict:
        """Decide whether to reuse an earlier task. `image`: the digest of the image that the task
        runs in, where it sees only its declared inputs. `reuse`: whether reuse is allowed."""
        parts = self._key_parts(node) | ({"image": image} if image else {})
        key = _hash(parts)
        if not reuse:
            return Verdict(key, parts, "it is not to be reused")
        why: str | None = None
        for done in find_tasks_with_key(self._graph, key, run=self._run):
            if image:
                check = self._check_outputs(done)
            else:
                check = self._checker.holds(done.execution, now, _is_given(done))
            if check.why_not is None:
                held = f"{done.task}: all {check.checked} facts hold"
                return Verdict(key, parts, held, done, build_outputs(node, done))
            why = why or f"{check.why_not} since {done.task}"
        return Verdict(key, parts, why or self._describe_change(node, parts))

    def _check_outputs(self, done: FinishedTask) -> ReuseCheck:
        """Check that the outputs of a container task are unchanged."""
        outputs = [artifact for several in done.artifacts.values() for artifact in several]
        for artifact in outputs:
            digest = self._digest(Path(artifact_path(artifact)))
            if isinstance(digest, dict):
                return ReuseCheck(f"what was in {artifact['uri']} is not known")
            if digest != artifact["digest"]:
                return ReuseCheck(f"{artifact['uri']}, which it made, changed")
        return ReuseCheck(None, len(outputs) + 1)

    def _describe_change(self, node: Node, parts: dict[str, Any]) -> str:
        """How the task differs from when it last ran."""
        last = find_last_task(self._graph, self._runs, node.path)
        if last is None:
            return _NEVER_RAN
        then = last.parts
        for name, describe in _DESCRIPTIONS.items():
            if then.get(name) != parts.get(name):
                return f"{describe(then.get(name), parts.get(name))} since {last.task}"
        return _NEVER_RAN

    def _key_parts(self, node: Node) -> dict[str, Any]:
        body, component = node.component.body, node.component
        if node.task.cache_key:
            return {"component": component.name, "cache_key": node.task.cache_key}
        parameters = node.inputs.parameters
        code: list[Any]
        if isinstance(body, Command):
            environment = sorted(body.environment.items())
            code = [body.image, body.command, body.arguments, environment]
            parameters = {**node.named_inputs.parameters, **parameters}
        else:
            assert isinstance(body, PythonFunction)
            code = [body.source, body.function, *body.installs]
        hashes = self._hashes.get(component.name)
        if hashes is None:
            slots = component.outputs
            outputs = [
                {name: slot.type for name, slot in slots.parameters.items()},
                {name: slot.type for name, slot in slots.artifacts.items()},
            ]
            hashes = self._hashes[component.name] = _hash(code), _hash(outputs)
        return {
            "code": hashes[0],
            "parameters": {n: _short(value) for n, value in parameters.items()},
            "inputs": {
                name: [self._hash_artifact(artifact) for artifact in artifacts]
                for name, artifacts in node.inputs.artifacts.items()
            },
            "outputs": hashes[1],
        }

    def _hash_artifact(self, artifact: Artifact) -> str:
        """By its content; by its URI if that is not a local path."""
        described = [artifact.get("name"), artifact["type"], artifact.get("metadata") or {}]
        path = str(artifact.get("custom_path") or artifact["uri"])
        return _hash([*described, self._digest(Path(path)) or path])

    def _digest(self, path: Path) -> Any:
        """The digest of a file; of a directory, those of its files; None if it is not local."""
        if not path.is_absolute():
            return None
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if not file.is_dir())
            return {
                os.fspath(file.relative_to(path)): self._checker.digest(os.fsencode(file))
                for file in files
            }
        return self._checker.digest(os.fsencode(path))


def list_facts(
    directory: ProjectDirectory, settings: Settings, execution: ExecutionId | None
) -> list[dict[str, str]]:
    """The facts that the execution of a task depended on, beside its declared inputs."""
    if execution is None:
        return []
    from clew.replay.reuse.task_reuse_check import ReuseChecker

    with (
        db.connect(directory.graph, address=settings.graph) as connection,
        Store(directory.store) as store,
    ):
        return ReuseChecker(Graph(connection, directory.uid), store).list_dependencies(execution)


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return blake3(text.encode(errors="surrogatepass")).hexdigest(length=16)


def _short(value: Any) -> Any:
    """A value to show later; the hash of a long one."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 100 else f"hash {_hash(value)}"


def _is_given(done: FinishedTask) -> Callable[[bytes], bool]:
    """Tells which paths the task was given: its directory, the directories of its run above that,
    and its declared inputs."""
    runs = (
        os.fsencode(done.directory).partition(b"/" + RUNS.encode() + b"/")[0] + b"/" + RUNS.encode()
    )
    given = [os.fsencode(done.directory), *(os.fsencode(path) for path in done.inputs)]

    def is_given(path: bytes) -> bool:
        if path.startswith(runs) and any(below.startswith(path + b"/") for below in given):
            return True
        return any(path == above or path.startswith(above + b"/") for above in given)

    return is_given


def build_outputs(node: Node, done: FinishedTask) -> Values:
    """The outputs of an earlier task as those of this one."""
    slots = node.component.outputs.artifacts
    artifacts: dict[str, list[Artifact]] = {
        name: [
            {
                "name": one.get("name") or name,
                "uri": one["uri"],
                "type": slots[name].type,
                "metadata": one["metadata"],
                **({"custom_path": one["custom_path"]} if one.get("custom_path") else {}),
            }
            for one in found
        ]
        for name, found in done.artifacts.items()
        if name in slots
    }
    return Values(dict(done.outputs), artifacts)


def _describe_members(what: str) -> Callable[[Any, Any], str]:
    def words(then: Any, now: Any) -> str:
        then, now = then or {}, now or {}
        for name in sorted({*then, *now}):
            if name not in then:
                return f"its {what} {name} is new"
            if name not in now:
                return f"its {what} {name} is not given any more"
            if then[name] != now[name]:
                if what == "parameter":
                    return f"its {what} {name} changed from {then[name]!r} to {now[name]!r}"
                return f"its {what} {name} changed"
        return f"its {what}s changed"

    return words


_DESCRIPTIONS: dict[str, Callable[[Any, Any], str]] = {
    "cache_key": lambda then, now: "its cache key changed",
    "code": lambda then, now: "its code changed",
    "image": lambda then, now: "its image changed",
    "parameters": _describe_members("parameter"),
    "inputs": _describe_members("input"),
    "outputs": lambda then, now: "what it makes changed",
}

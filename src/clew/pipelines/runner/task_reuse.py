"""Decide whether the result of an earlier task can be reused, in two steps.

The static key (code, function, parameters, content of declared inputs, declared outputs) finds
earlier tasks. The first one whose recorded facts all still hold is reused, with its outputs. When
in doubt, the task runs. Which facts there are, and how they are checked, depends on where the tasks
run (`unchanged_check`, `pods.pod_reuse`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from blake3 import blake3
from msgspec import Struct, field

from clew import db
from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.ir import Command, PythonFunction
from clew.pipelines.spec.values import Artifact, Values
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.queries.pipelines.finished_tasks import (
    FinishedTask,
    find_last_task,
    find_tasks_with_key,
    list_runs_of_pipeline,
)
from clew.replay.reuse.reuse_types import ReuseCheck
from clew.settings import Settings
from clew.store import Store

GRAPH_CACHE_MB = 2
"""Small, because a long run writes much more to the graph than it reads again."""

_NEVER_RAN = "it never ran before"


class Verdict(Struct, frozen=True):
    """Whether a task is reused, and why or why not."""

    key: str
    parts: dict[str, Any]
    """The values that the key is a hash of."""
    why: str
    reused: FinishedTask | None = None
    outputs: Values = field(default_factory=Values)


Check = Callable[[FinishedTask], ReuseCheck]
"""Checks that an earlier task with the same key would have the same result now."""
Bring = Callable[[FinishedTask], FinishedTask]
"""Brings the outputs of an earlier task to where the tasks of this run find them; ClewError or
OSError if that fails."""
Identify = Callable[[Artifact], Any]
"""What artifacts with the same content have in common; None if the content is not known."""


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
        self.graph = Graph(connection, directory.uid, signers=settings.config)
        self._runs = list_runs_of_pipeline(self.graph, pipeline)
        self.store = self._stack.enter_context(Store(directory.store))

    def close(self) -> None:
        self._stack.close()

    def decide(
        self,
        node: Node,
        check: Check,
        identify: Identify,
        *,
        more: Mapping[str, Any],
        reuse: bool,
        bring: Bring = lambda done: done,
    ) -> Verdict:
        """Decide whether to reuse an earlier task. `more`: further parts of the key; `reuse`:
        whether reuse is allowed."""
        parts = {**self._key_parts(node, identify), **more}
        key = _hash(parts)
        if not reuse:
            return Verdict(key, parts, "it is not to be reused")
        why: str | None = None
        for done in find_tasks_with_key(self.graph, key, run=self._run):
            result = check(done)
            if result.why_not is None:
                try:
                    brought = bring(done)
                except (ClewError, OSError) as error:
                    result = ReuseCheck(f"its outputs cannot be copied here ({error})")
                else:
                    held = _describe_reuse(done, result)
                    return Verdict(key, parts, held, brought, build_outputs(node, brought))
            why = why or f"{result.why_not} since {done.task}"
        return Verdict(key, parts, why or self._describe_change(node, parts))

    def _describe_change(self, node: Node, parts: dict[str, Any]) -> str:
        """How the task differs from when it last ran."""
        last = find_last_task(self.graph, self._runs, node.path)
        if last is None:
            return _NEVER_RAN
        then = last.parts
        for name, describe in _DESCRIPTIONS.items():
            if then.get(name) != parts.get(name):
                return f"{describe(then.get(name), parts.get(name))} since {last.task}"
        return _NEVER_RAN

    def _key_parts(self, node: Node, identify: Identify) -> dict[str, Any]:
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
                name: [_hash_artifact(artifact, identify) for artifact in artifacts]
                for name, artifacts in node.inputs.artifacts.items()
            },
            "outputs": hashes[1],
        }


def _describe_reuse(done: FinishedTask, result: ReuseCheck) -> str:
    """What was compared, and where the earlier task ran unless it was a process of this machine."""
    said = [f"{done.task}: all {result.checked} facts hold"]
    if result.basis:
        said.append(result.basis)
    if done.pod:
        said.append(f"it ran as the Pod {done.pod} on {done.node or 'no node'}")
    elif done.image_digests:
        said.append("it ran in a container on one machine")
    return "; ".join(said)


def _describe_image(then: Any, now: Any) -> str:
    if now is None:
        return "it is not run in an image any more"
    return "its image changed" if then else "it is run in an image now"


def _hash_artifact(artifact: Artifact, identify: Identify) -> str:
    """By its content; by its URI if the content is not known."""
    described = [artifact.get("name"), artifact["type"], artifact.get("metadata") or {}]
    place = str(artifact.get("custom_path") or artifact["uri"])
    return _hash([*described, identify(artifact) or place])


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return blake3(text.encode(errors="surrogatepass")).hexdigest(length=16)


def _short(value: Any) -> Any:
    """A value to show later; the hash of a long one."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 100 else f"hash {_hash(value)}"


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
    "image": _describe_image,
    "settings": lambda then, now: "its variables or platform settings changed",
    "parameters": _describe_members("parameter"),
    "inputs": _describe_members("input"),
    "outputs": lambda then, now: "what it makes changed",
}

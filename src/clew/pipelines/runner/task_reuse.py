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
from clew.pipelines.engine.scopes import Node
from clew.pipelines.spec.ir import Command, PythonFunction
from clew.pipelines.spec.placeholders import artifact_path
from clew.pipelines.spec.values import Artifact, Values
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.queries.pipelines.tasks import (
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

RUNS = "pipeline-runs"
"""Beside `.clew/`: a directory for each run, with one for each of its tasks."""

CACHE = 2
"""MB of the graph in memory: a long run writes more of it than it will ever look at again."""

_NEW = "it never ran before"


class Verdict(Struct, frozen=True):
    """What is to be done with a task, and why."""

    key: str
    parts: dict[str, Any]
    """What the key is made of."""
    why: str
    reused: FinishedTask | None = None
    outputs: Values = field(default_factory=Values)


class Memo:
    """What is known of earlier runs, asked by one run."""

    def __init__(
        self, directory: ProjectDirectory, settings: Settings, pipeline: str, run: str
    ) -> None:
        """`run`: the uid of the one that asks."""
        self._run = run
        self._hashes: dict[str, tuple[str, str]] = {}  # of the code and outputs of components
        self._stack = ExitStack()
        opened = db.connect(directory.graph, address=settings.graph, cache=CACHE)
        connection = self._stack.enter_context(opened)
        self._graph = Graph(connection, directory.uid, signers=settings.config)
        self._runs = list_runs_of_pipeline(self._graph, pipeline)
        self._store = self._stack.enter_context(Store(directory.store))

    @cached_property
    def _reuse(self) -> ReuseChecker:
        """Loaded when there is something to ask: what never ran before does not wait for it."""
        from clew.replay.reuse.task_reuse_check import ReuseChecker

        return ReuseChecker(self._graph, self._store)

    def close(self) -> None:
        self._stack.close()

    def changed(self) -> None:
        """A task ran, and may have changed anything."""
        if "_reuse" in vars(self):
            self._reuse.changed()

    def decide(
        self, node: Node, now: TaskVariables, *, image: str | None = None, reuse: bool
    ) -> Verdict:
        """`image`: the digest of the one that it runs in, where it sees nothing but what it is
        given; `reuse`: an earlier one may stand for it."""
        parts = self._parts(node) | ({"image": image} if image else {})
        key = _hash(parts)
        if not reuse:
            return Verdict(key, parts, "it is not to be reused")
        why: str | None = None
        for done in find_tasks_with_key(self._graph, key, run=self._run):
            if image:
                answer = self._kept(done)
            else:
                answer = self._reuse.holds(done.execution, now, _given(done))
            if answer.why_not is None:
                said = f"{done.task}: all {answer.checked} facts hold"
                return Verdict(key, parts, said, done, outputs_of(node, done))
            why = why or f"{answer.why_not} since {done.task}"
        return Verdict(key, parts, why or self._nearest(node, parts))

    def _kept(self, done: FinishedTask) -> ReuseCheck:
        """Whether all that was made in an image is there, as it was made."""
        made = [one for found in done.artifacts.values() for one in found]
        for one in made:
            content = self._content(Path(artifact_path(one)))
            if isinstance(content, dict):
                return ReuseCheck(f"what was in {one['uri']} is not known")
            if content != one["digest"]:
                return ReuseCheck(f"{one['uri']}, which it made, changed")
        return ReuseCheck(None, len(made) + 1)

    def _nearest(self, node: Node, parts: dict[str, Any]) -> str:
        """How the task differs from when it last ran."""
        last = find_last_task(self._graph, self._runs, node.path)
        if last is None:
            return _NEW
        then = last.parts
        for name, words in _PARTS.items():
            if then.get(name) != parts.get(name):
                return f"{words(then.get(name), parts.get(name))} since {last.task}"
        return _NEW

    def _parts(self, node: Node) -> dict[str, Any]:
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
                name: [self._identity(one) for one in found]
                for name, found in node.inputs.artifacts.items()
            },
            "outputs": hashes[1],
        }

    def _identity(self, one: Artifact) -> str:
        """An artifact by what it holds; one that is elsewhere, by where."""
        told = [one.get("name"), one["type"], one.get("metadata") or {}]
        place = str(one.get("custom_path") or one["uri"])
        return _hash([*told, self._content(Path(place)) or place])

    def _content(self, place: Path) -> Any:
        if not place.is_absolute():
            return None
        if place.is_dir():
            found = sorted(file for file in place.rglob("*") if not file.is_dir())
            return {
                os.fspath(file.relative_to(place)): self._reuse.digest(os.fsencode(file))
                for file in found
            }
        return self._reuse.digest(os.fsencode(place))


def facts(
    directory: ProjectDirectory, settings: Settings, execution: str | None
) -> list[dict[str, str]]:
    """All that the execution of a task relied on, beside what it was given."""
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
    """A value as it can be shown later; a long one by its hash."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 100 else f"hash {_hash(value)}"


def _given(done: FinishedTask) -> Callable[[bytes], bool]:
    """What was laid out for the task, with the directories of its run on the way there, and its
    declared inputs."""
    runs = os.fsencode(done.place).partition(b"/" + RUNS.encode() + b"/")[0] + b"/" + RUNS.encode()
    places = [os.fsencode(done.place), *(os.fsencode(path) for path in done.inputs)]

    def given(path: bytes) -> bool:
        if path.startswith(runs) and any(place.startswith(path + b"/") for place in places):
            return True
        return any(path == place or path.startswith(place + b"/") for place in places)

    return given


def outputs_of(node: Node, done: FinishedTask) -> Values:
    """What an earlier task made, as the outputs of this one."""
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


def _members(what: str) -> Callable[[Any, Any], str]:
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


_PARTS: dict[str, Callable[[Any, Any], str]] = {
    "cache_key": lambda then, now: "its cache key changed",
    "code": lambda then, now: "its code changed",
    "image": lambda then, now: "its image changed",
    "parameters": _members("parameter"),
    "inputs": _members("input"),
    "outputs": lambda then, now: "what it makes changed",
}

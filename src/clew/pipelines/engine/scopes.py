"""What the engine knows of a run: the tasks of each pipeline within it, and how each one stands.

A scope is one going-through of a pipeline's tasks: of the root, of a pipeline within it, or of
one iteration of a loop. All of it is plain state; `engine` alone changes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from clew.pipelines.spec.ir import Component, Dag, FromTask, Task

Artifact = dict[str, Any]
"""As the SDK's executor knows it: name, uri, type, metadata."""

FINAL_STATES = frozenset({"succeeded", "failed", "skipped", "canceled"})


class Values(Struct):
    """What goes into a task, or comes out of it; what has no value is not in it."""

    parameters: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, list[Artifact]] = field(default_factory=dict)


class Node(Struct, eq=False):
    """One task in one scope."""

    task: Task
    component: Component
    path: str
    state: str = "pending"
    inputs: Values = field(default_factory=Values)
    given: Values = field(default_factory=Values)
    """All that the task names, also what its component does not declare."""
    outputs: Values = field(default_factory=Values)
    informed: frozenset[Node] = frozenset()
    """The tasks that its parameters come from."""
    process: str | None = None
    """The one that did it, in the record."""
    recurs: bool = False
    """A pipeline that it stands in may be tried again, and it with it."""
    attempts: int = 0
    error: str | None = None
    scopes: dict[str, Scope] = field(default_factory=dict)
    """By their paths; of a loop, those that go on, and those that somebody may ask about."""
    open: int = 0
    """How many of its scopes go on."""
    waiting: list[Any] = field(default_factory=list)
    """The items of a loop whose iterations were not begun yet, last first."""
    common: Values = field(default_factory=Values)
    """What all iterations of a loop are given."""
    begun: int = 0
    """How many iterations were begun."""

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def may_begin(self) -> bool:
        """Whether a loop may begin another iteration."""
        loop = self.task.loop
        return loop is not None and (not loop.limit or self.open < loop.limit)

    def forget(self) -> None:
        """It is over, and told: of a thousand iterations, what each was given is kept no longer."""
        self.inputs = self.given = _NO_VALUES
        self.informed = frozenset()


_NO_VALUES = Values()


class Scope(Struct, eq=False):
    path: str
    dag: Dag
    inputs: Values
    nodes: dict[str, Node]
    owner: Node | None = None
    closed: bool = False

    @property
    def failed(self) -> Node | None:
        """The first task in it that failed."""
        return next((node for node in self.nodes.values() if node.state == "failed"), None)

    def close(self) -> None:
        """All in it is over."""
        self.closed, self.inputs = True, _NO_VALUES

    def outputs(self) -> Values:
        """Of several sources of an output, the one that exists."""
        found = Values()
        for name, sources in self.dag.parameters.items():
            for source in sources:
                if (value := self._parameter(source)) is not None:
                    found.parameters[name] = value
                    break
        for name, sources in self.dag.artifacts.items():
            for source in sources:
                made = self.nodes[source.task].outputs.artifacts.get(source.output)
                if made is not None:
                    found.artifacts[name] = made
                    break
        return found

    def _parameter(self, source: FromTask) -> Any:
        return self.nodes[source.task].outputs.parameters.get(source.output)


def collect_outputs(scopes: Iterable[Scope], names: Dag) -> Values:
    """What the iterations of a loop gave, in their order; one that gave nothing is left out."""
    each = [scope.outputs() for scope in scopes]
    return Values(
        {
            name: [one.parameters[name] for one in each if name in one.parameters]
            for name in names.parameters
        },
        {
            name: [made for one in each for made in one.artifacts.get(name, ())]
            for name in names.artifacts
        },
    )


def join_path(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name

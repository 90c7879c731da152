"""The state of a run: scopes, and one node for each task in a scope.

A scope is one pass through the tasks of a DAG: of the root pipeline, of an inner pipeline, or of
one iteration of a loop. All of it is plain state that only `engine` changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from clew.documents.ids import Uid
from clew.pipelines.spec.ir import Component, Dag, Task
from clew.pipelines.spec.values import Values


class Node(Struct, eq=False):
    """One task in one scope."""

    task: Task
    component: Component
    path: str
    state: str = "pending"
    inputs: Values = field(default_factory=Values)
    """The inputs that the component declares."""
    named_inputs: Values = field(default_factory=Values)
    """All inputs that the task names, also those that its component does not declare."""
    outputs: Values = field(default_factory=Values)
    producers: frozenset[Node] = frozenset()
    """The tasks that its parameters come from."""
    process: Uid | None = None
    """The process that ran it, in the graph."""
    repeatable: bool = False
    """An enclosing group has a retry policy, so this path may run again."""
    blockers: int = 0
    """Dependencies that have not finished."""
    attempts: int = 0
    error: str | None = None
    scopes: dict[str, Scope] = field(default_factory=dict)
    """The scopes of a group, by path. A loop keeps open iterations and those whose outputs are
    needed."""
    open_scopes: int = 0
    pending_items: list[Any] = field(default_factory=list)
    """The items of a loop that have no iteration yet, last first."""
    shared_inputs: Values = field(default_factory=Values)
    """The inputs that all iterations of a loop have in common."""
    iterations: int = 0
    """How many iterations were begun."""

    @property
    def depth(self) -> int:
        return self.path.count("/")

    @property
    def may_begin_iteration(self) -> bool:
        loop = self.task.loop
        return (
            loop is not None
            and bool(self.pending_items)
            and (not loop.limit or self.open_scopes < loop.limit)
        )

    def release(self) -> None:
        """Free the inputs of a task that is recorded, so that a long loop needs little memory."""
        self.inputs = self.named_inputs = _NO_VALUES
        self.producers = frozenset()


_NO_VALUES = Values()


class Scope(Struct, eq=False):
    path: str
    dag: Dag
    inputs: Values
    nodes: dict[str, Node]
    owner: Node | None = None
    closed: bool = False
    unfinished: int = 0

    def __post_init__(self) -> None:
        self.unfinished = len(self.nodes)

    @property
    def failed(self) -> Node | None:
        """The first failed task, in the order of the pipeline."""
        return next((node for node in self.nodes.values() if node.state == "failed"), None)

    def outputs(self) -> Values:
        """The outputs of the DAG: of an output with several sources, the first that exists."""
        found = Values()
        for name, sources in self.dag.parameters.items():
            for source in sources:
                value = self.nodes[source.task].outputs.parameters.get(source.output)
                if value is not None:
                    found.parameters[name] = value
                    break
        for name, sources in self.dag.artifacts.items():
            for source in sources:
                made = self.nodes[source.task].outputs.artifacts.get(source.output)
                if made is not None:
                    found.artifacts[name] = made
                    break
        return found


def collect_outputs(scopes: Iterable[Scope], names: Dag) -> Values:
    """The outputs of a loop: one list per output, in the order of the iterations."""
    each = [scope.outputs() for scope in scopes]
    return Values(
        {
            name: [outputs.parameters[name] for outputs in each if name in outputs.parameters]
            for name in names.parameters
        },
        {
            name: [made for outputs in each for made in outputs.artifacts.get(name, ())]
            for name in names.artifacts
        },
    )


def join_path(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name

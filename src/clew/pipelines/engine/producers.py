"""Which tasks the parameters of a task come from, through pipelines within pipelines and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clew.pipelines.engine.scopes import Node, Scope
from clew.pipelines.spec.ir import Constant, FromInput, FromTask, Source


def find_producers(homes: Mapping[str, Scope], node: Node) -> set[Node]:
    """The tasks that gave it a parameter, and were run for it."""
    scope = homes[node.path]
    return {
        found
        for one in node.task.parameters.values()
        for found in _find_by_source(homes, scope, one.source)
    }


def _find_by_source(homes: Mapping[str, Scope], scope: Scope, source: Source) -> Iterator[Node]:
    if isinstance(source, FromTask):
        yield from _find_by_output(scope.nodes[source.task], source.output)
    elif isinstance(source, FromInput) and scope.owner is not None:
        owner, name = scope.owner, source.name
        loop = owner.task.loop
        if loop is not None and name == loop.item:
            name = loop.source or ""
        outer = owner.task.parameters.get(name)
        if outer is not None and not isinstance(outer.source, Constant):
            yield from _find_by_source(homes, homes[owner.path], outer.source)


def _find_by_output(node: Node, output: str) -> Iterator[Node]:
    """Who made an output: the task itself, or those within it."""
    if not node.scopes:
        yield node
    for scope in node.scopes.values():
        for source in scope.dag.parameters.get(output, ()):
            yield from _find_by_output(scope.nodes[source.task], source.output)

"""Find the tasks that the parameters of a task come from, through inner pipelines and loops."""

from collections.abc import Iterator, Mapping

from clew.pipelines.engine.scopes import Node, Scope
from clew.pipelines.spec.ir import Constant, FromInput, FromTask, Source


def find_producers(scopes: Mapping[str, Scope], node: Node) -> set[Node]:
    """`scopes`: the scope of each task, by the task's path."""
    scope = scopes[node.path]
    return {
        producer
        for parameter in node.task.parameters.values()
        for producer in _find_by_source(scopes, scope, parameter.source)
    }


def _find_by_source(scopes: Mapping[str, Scope], scope: Scope, source: Source) -> Iterator[Node]:
    if isinstance(source, FromTask):
        yield from _find_by_output(scope.nodes[source.task], source.output)
    elif isinstance(source, FromInput) and scope.owner is not None:
        owner, name = scope.owner, source.name
        loop = owner.task.loop
        if loop is not None and name == loop.item:
            name = loop.source or ""
        outer = owner.task.parameters.get(name)
        if outer is not None and not isinstance(outer.source, Constant):
            yield from _find_by_source(scopes, scopes[owner.path], outer.source)


def _find_by_output(node: Node, output: str) -> Iterator[Node]:
    """The task itself or, of a group, the tasks inside it."""
    if not node.scopes:
        yield node
    for scope in node.scopes.values():
        for source in scope.dag.parameters.get(output, ()):
            yield from _find_by_output(scope.nodes[source.task], source.output)

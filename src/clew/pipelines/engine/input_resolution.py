"""Resolve the inputs of a task to values, and find the tasks they come from. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clew.pipelines.engine.run_state import Node, Scope
from clew.pipelines.spec.ir import (
    Constant,
    Dag,
    FinalStatus,
    FromInput,
    FromTask,
    Importer,
    Input,
    Loop,
    Source,
)
from clew.pipelines.spec.placeholders import MissingValue, fill
from clew.pipelines.spec.values import Artifact, Values, WrongType, convert

_FAILED_PRECONDITION = 9
"""The gRPC status code that a cluster reports for a failed task."""


class BadInput(ValueError):
    """An input of a task has no value, or a value of the wrong type."""


def resolve_inputs(scope: Scope, node: Node, facts: Mapping[str, str]) -> Values:
    """The values of all inputs that the task names, declared by its component or not. Inputs
    without a value are left out."""
    task, found = node.task, Values()
    constants: dict[str, Input] = {}
    for name, one in task.artifacts.items():
        made = _read_artifacts(scope, one)
        if made is not None:
            found.artifacts[name] = made
    for name, one in task.parameters.items():
        if isinstance(one.source, Constant):
            constants[name] = one
            continue
        value = _read_member(_read_parameter(scope, one, facts), one.key)
        if value is not None:
            found.parameters[name] = value
    for name, one in constants.items():  # last: they may have placeholders of the others
        assert isinstance(one.source, Constant)
        value = _read_member(fill_placeholders(one.source.value, found, node, facts), one.key)
        if value is not None:
            found.parameters[name] = value
    return found


def fill_placeholders(value: Any, inputs: Values, node: Node, facts: Mapping[str, str]) -> Any:
    """Replace the placeholders in a constant."""
    task_facts = {
        **facts,
        "pipeline_task_name": node.task.name,
        "pipeline_task_uuid": f"{facts.get('pipeline_job_uuid', '')}/{node.path}",
    }
    try:
        return fill(value, inputs.parameters, inputs.artifacts, task_facts)
    except MissingValue as error:
        raise BadInput(str(error)) from error


def select_declared(node: Node, inputs: Values) -> Values:
    """The inputs that the component declares, converted to their types. An inner pipeline also
    gets its defaults, since no SDK fills them in."""
    slots, found = node.component.inputs, Values()
    inner = isinstance(node.component.body, Dag)
    for name, slot in slots.parameters.items():
        value = inputs.parameters.get(name)
        if value is None and inner:
            value = slot.default
        if value is None and slot.type == "TASK_CONFIG":
            value = {}
        if value is None:
            if not slot.optional and not inner:
                raise BadInput(f"the input {name} has no value")
            continue
        try:
            found.parameters[name] = convert(value, slot.type, slot.literals)
        except WrongType as error:
            raise BadInput(f"the input {name}: {error}") from error
    for name, kind in slots.artifacts.items():
        made = inputs.artifacts.get(name)
        if made is None:
            if not kind.optional and not inner:
                raise BadInput(f"the input {name} has no artifact")
            continue
        found.artifacts[name] = made
    return found


def list_loop_items(
    node: Node, loop: Loop, common: Values, inputs: Values, facts: Mapping[str, str]
) -> list[Any]:
    """The items of a loop, each checked against the type of the loop's input."""
    found = _read_items(loop, inputs, node, facts)
    for item in found:
        bind_iteration(node, loop, common, item)
    return found


def _read_items(loop: Loop, inputs: Values, node: Node, facts: Mapping[str, str]) -> list[Any]:
    if loop.items is not None:
        return [fill_placeholders(item, inputs, node, facts) for item in loop.items]
    name = loop.source or ""
    if loop.artifacts:
        return list(inputs.artifacts.get(name, ()))
    value = inputs.parameters.get(name)
    if value is None:
        raise BadInput(f"the loop's input {name} has no value")
    try:
        return list(convert(value, "LIST"))
    except WrongType as error:
        raise BadInput(f"the loop's input {name}: {error}") from error


def bind_iteration(node: Node, loop: Loop, common: Values, item: Any) -> Values:
    """The inputs of one iteration: those of all iterations, and its item."""
    parameters, artifacts = dict(common.parameters), dict(common.artifacts)
    slot = node.component.inputs.parameters.get(loop.item)
    if loop.artifacts:
        artifacts[loop.item] = [item]
    elif slot is not None:
        try:
            parameters[loop.item] = convert(item, slot.type, slot.literals)
        except WrongType as error:
            raise BadInput(f"the input {loop.item}: {error}") from error
    return Values(parameters, artifacts)


def import_artifact(node: Node, inputs: Values, facts: Mapping[str, str]) -> Values:
    """The output of an importer, which needs no process."""
    body = node.component.body
    assert isinstance(body, Importer)
    source = body.uri.source
    if isinstance(source, FromInput):
        uri = inputs.parameters.get(source.name)
    else:
        assert isinstance(source, Constant)
        uri = fill_placeholders(source.value, inputs, node, facts)
    if not isinstance(uri, str) or not uri:
        raise BadInput("the importer has no URI")
    artifact: Artifact = {
        "name": "artifact",
        "uri": uri,
        "type": body.slot.type,
        "metadata": fill_placeholders(dict(body.metadata), inputs, node, facts),
    }
    return Values(artifacts={"artifact": [artifact]})


def _read_parameter(scope: Scope, one: Input, facts: Mapping[str, str]) -> Any:
    source = one.source
    if isinstance(source, FromInput):
        return scope.inputs.parameters.get(source.name)
    assert not isinstance(source, Constant)
    producer = scope.nodes[source.task]
    if isinstance(source, FinalStatus):
        return _describe_status(producer, facts)
    return producer.outputs.parameters.get(source.output)


def _read_artifacts(scope: Scope, one: Input) -> list[Artifact] | None:
    source = one.source
    if isinstance(source, FromInput):
        return scope.inputs.artifacts.get(source.name)
    assert not isinstance(source, Constant | FinalStatus)
    return scope.nodes[source.task].outputs.artifacts.get(source.output)


def _describe_status(node: Node, facts: Mapping[str, str]) -> dict[str, Any]:
    """The SDK's PipelineTaskFinalStatus of a task."""
    failed = node.state == "failed"
    return {
        "state": node.state.upper(),
        "pipelineJobResourceName": facts.get("pipeline_job_resource_name", ""),
        "pipelineTaskName": node.task.name,
        "error": {"code": _FAILED_PRECONDITION, "message": node.error or ""} if failed else {},
    }


def _read_member(value: Any, key: str | None) -> Any:
    if key is None or value is None:
        return value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise BadInput(f"the value is not JSON, so it has no member {key!r}") from error
    if not isinstance(value, dict) or key not in value:
        raise BadInput(f"the value has no member {key!r}")
    return value[key]


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

"""The command, variables and image of a container component, with the inputs of its task."""

from collections.abc import Iterable, Mapping
from typing import Any

from clew.pipelines.engine.input_resolution import fill_placeholders
from clew.pipelines.engine.scopes import Node
from clew.pipelines.spec.command_words import expand_word, output_placeholders
from clew.pipelines.spec.ir import Command
from clew.pipelines.spec.values import Values, to_text


def build_command(
    templates: Iterable[str],
    node: Node,
    executor_input: Mapping[str, Any],
    facts: Mapping[str, str],
) -> list[str]:
    present = {*node.inputs.parameters, *node.inputs.artifacts}
    inputs, known = _inputs_and_defaults(node), {**facts, **output_placeholders(executor_input)}
    return [
        to_text(fill_placeholders(word, inputs, node, known))
        for template in templates
        for word in expand_word(template, present)
    ]


def build_environment(
    environment: Mapping[str, str], node: Node, facts: Mapping[str, str]
) -> dict[str, str]:
    inputs = _inputs_and_defaults(node)
    return {
        name: to_text(fill_placeholders(value, inputs, node, facts))
        for name, value in environment.items()
    }


def resolve_image(body: Command, node: Node, facts: Mapping[str, str]) -> str:
    return to_text(fill_placeholders(body.image, _inputs_and_defaults(node), node, facts))


def _inputs_and_defaults(node: Node) -> Values:
    """All inputs that the task names, and the defaults of the others."""
    slots = node.component.inputs.parameters
    defaults = {name: slot.default for name, slot in slots.items()}
    return Values(
        {**defaults, **node.named_inputs.parameters, **node.inputs.parameters},
        {**node.named_inputs.artifacts, **node.inputs.artifacts},
    )

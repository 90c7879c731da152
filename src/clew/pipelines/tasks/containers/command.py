"""The words of a container component, once its task is known.

A word may be a text with placeholders; or the JSON of a structure that is one word or several, by
which inputs were given. Structures are unfolded before any value is put in, so that no value can
be taken for one.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import Any

from clew.pipelines.engine.input_resolution import fill_placeholders
from clew.pipelines.engine.scopes import Node, Values
from clew.pipelines.spec.ir import Command, Slots
from clew.pipelines.spec.placeholders import artifact_path, find_unknown
from clew.pipelines.spec.values import to_text

_STRUCTURES = ('{"Concat":', '{"IfPresent":')


class InvalidStructure(ValueError):
    """A word begins as a structure does, and is none."""


def find_unknown_in_word(word: str, outputs: Slots) -> str | None:
    """The first placeholder in a word that nothing can stand for; NotAStructure where it is
    malformed."""
    return find_unknown(_list_texts(_parse_structure(word)), _output_placeholder_names(outputs))


def build_command(
    templates: Iterable[str], node: Node, given: Mapping[str, Any], facts: Mapping[str, str]
) -> list[str]:
    """What a task is called with; `given` is its executor input."""
    present = {*node.inputs.parameters, *node.inputs.artifacts}
    known = {**facts, **_output_placeholders(given)}
    return [
        to_text(fill_placeholders(word, _inputs_and_defaults(node), node, known))
        for template in templates
        for word in _expand(_parse_structure(template), present)
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
    """All that the task names, and the defaults of what it does not."""
    slots = node.component.inputs.parameters
    defaults = {name: slot.default for name, slot in slots.items()}
    return Values(
        {**defaults, **node.named_inputs.parameters, **node.inputs.parameters},
        {**node.named_inputs.artifacts, **node.inputs.artifacts},
    )


def _parse_structure(word: str) -> Any:
    if not word.lstrip().startswith(_STRUCTURES):
        return word
    try:
        found = json.loads(word)
        _list_texts(found)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidStructure(f"{word[:60]} is no Concat or IfPresent") from error
    return found


def _list_texts(part: Any) -> list[str]:
    """All the texts in a structure."""
    if isinstance(part, str):
        return [part]
    if isinstance(part, list):
        return [found for one in part for found in _list_texts(one)]
    if "Concat" in part:
        return _list_texts(list(part["Concat"]))
    condition = part["IfPresent"]
    return [*_list_texts(condition["Then"]), *_list_texts(condition.get("Else") or [])]


def _expand(part: Any, present: Container[str]) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, list):
        return [word for one in part for word in _expand(one, present)]
    if "Concat" in part:
        return ["".join(_expand(list(part["Concat"]), present))]
    condition = part["IfPresent"]
    chosen = condition["Then"] if condition["InputName"] in present else condition.get("Else")
    return _expand(chosen or [], present)


def _output_placeholders(given: Mapping[str, Any]) -> dict[str, Any]:
    """Where a task is to leave what it makes, as placeholders name it."""
    outputs = given["outputs"]
    found = {"": given, "outputs.output_file": outputs["outputFile"]}
    found["outputMetadataUri"] = outputs["outputFile"]
    for name, one in outputs["parameters"].items():
        found[f"outputs.parameters['{name}'].output_file"] = one["outputFile"]
    for name, one in outputs["artifacts"].items():
        [artifact] = one["artifacts"]
        found[f"outputs.artifacts['{name}']"] = one["artifacts"]
        found[f"outputs.artifacts['{name}'].uri"] = artifact["uri"]
        found[f"outputs.artifacts['{name}'].path"] = artifact_path(artifact)
        found[f"outputs.artifacts['{name}'].metadata"] = artifact["metadata"]
    return found


def _output_placeholder_names(outputs: Slots) -> set[str]:
    artifact: dict[str, Any] = {"uri": "", "metadata": {}}
    slots = {
        "parameters": {name: {"outputFile": ""} for name in outputs.parameters},
        "artifacts": {name: {"artifacts": [artifact]} for name in outputs.artifacts},
    }
    return set(_output_placeholders({"outputs": {"outputFile": "", **slots}}))

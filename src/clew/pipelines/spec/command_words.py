"""The words of a container's command: texts with placeholders, or `Concat` and `IfPresent`.

A structure is the JSON of one word or several, depending on which inputs have a value. Structures
are expanded before values are filled in, so that no value can be mistaken for a structure.
"""

import json
from collections.abc import Container, Mapping
from typing import Any

from clew.pipelines.spec.ir import Slots
from clew.pipelines.spec.placeholders import artifact_path, find_unknown

_STRUCTURES = ('{"Concat":', '{"IfPresent":')


class InvalidStructure(ValueError):
    """A word starts like a structure, but is malformed."""


def find_unknown_in_word(word: str, outputs: Slots) -> str | None:
    """The first placeholder that is not supported; InvalidStructure if the word is malformed."""
    artifact: dict[str, Any] = {"uri": "", "metadata": {}}
    executor_input = {
        "outputs": {
            "outputFile": "",
            "parameters": {name: {"outputFile": ""} for name in outputs.parameters},
            "artifacts": {name: {"artifacts": [artifact]} for name in outputs.artifacts},
        }
    }
    return find_unknown(_list_texts(_parse(word)), output_placeholders(executor_input))


def expand_word(word: str, present: Container[str]) -> list[str]:
    """The texts that a word stands for; `present`: the inputs that have a value."""
    return _expand(_parse(word), present)


def output_placeholders(executor_input: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the placeholders for outputs: where a task must write them."""
    outputs = executor_input["outputs"]
    values = {"": executor_input, "outputs.output_file": outputs["outputFile"]}
    values["outputMetadataUri"] = outputs["outputFile"]
    for name, parameter in outputs["parameters"].items():
        values[f"outputs.parameters['{name}'].output_file"] = parameter["outputFile"]
    for name, output in outputs["artifacts"].items():
        [artifact] = output["artifacts"]
        values[f"outputs.artifacts['{name}']"] = output["artifacts"]
        values[f"outputs.artifacts['{name}'].uri"] = artifact["uri"]
        values[f"outputs.artifacts['{name}'].path"] = artifact_path(artifact)
        values[f"outputs.artifacts['{name}'].metadata"] = artifact["metadata"]
    return values


def _parse(word: str) -> Any:
    if not word.lstrip().startswith(_STRUCTURES):
        return word
    try:
        structure = json.loads(word)
        _list_texts(structure)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidStructure(f"{word[:60]} is not a valid Concat or IfPresent") from error
    return structure


def _list_texts(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, list):
        return [text for inner in part for text in _list_texts(inner)]
    if "Concat" in part:
        return _list_texts(list(part["Concat"]))
    condition = part["IfPresent"]
    return [*_list_texts(condition["Then"]), *_list_texts(condition.get("Else") or [])]


def _expand(part: Any, present: Container[str]) -> list[str]:
    if isinstance(part, str):
        return [part]
    if isinstance(part, list):
        return [word for inner in part for word in _expand(inner, present)]
    if "Concat" in part:
        return ["".join(_expand(list(part["Concat"]), present))]
    condition = part["IfPresent"]
    chosen = condition["Then"] if condition["InputName"] in present else condition.get("Else")
    return _expand(chosen or [], present)

"""What the SDK's executor is given and leaves: the contract between a task and its component."""

from collections.abc import Callable, Mapping
from typing import Any

from clew.pipelines.engine.engine import TaskResult
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.values import Artifact, Values, WrongType, convert, parse_value

OUTPUT = "executor_output.json"


def build_executor_input(node: Node, place: str, directory: str) -> dict[str, Any]:
    """`place`: below it are the URIs of output artifacts; `directory`: where the task writes the
    other outputs."""
    inputs, outputs = node.inputs, node.component.outputs
    return {
        "inputs": {
            "parameterValues": inputs.parameters,
            "artifacts": {n: {"artifacts": a} for n, a in inputs.artifacts.items()},
        },
        "outputs": {
            "parameters": {
                name: {"outputFile": f"{directory}/{name}"} for name in outputs.parameters
            },
            "artifacts": {
                name: {"artifacts": [_output_artifact(node, name, place)]}
                for name in outputs.artifacts
            },
            "outputFile": f"{directory}/{OUTPUT}",
        },
    }


def _output_artifact(node: Node, name: str, place: str) -> Artifact:
    kind = node.component.outputs.artifacts[name].type
    return {"name": name, "uri": f"{place}/{name}", "type": kind, "metadata": {}}


def read_outputs(
    node: Node,
    executor_input: Mapping[str, Any],
    output: Mapping[str, Any],
    read: Callable[[str], str | None],
) -> TaskResult:
    """The outputs of a task. `output`: what the executor wrote; `read`: the content of the file of
    an output parameter, or None without one."""
    parameters = {}
    for name, slot in node.component.outputs.parameters.items():
        try:
            if name in output.get("parameterValues", {}):
                parameters[name] = convert(output["parameterValues"][name], slot.type)
                continue
            text = read(name)
            if text is None:
                return TaskResult(error=f"it left no value for its output {name}")
            parameters[name] = parse_value(
                text if slot.type == "STRING" else text.strip(), slot.type
            )
        except (WrongType, OSError, UnicodeDecodeError) as error:
            return TaskResult(error=f"its output {name}: {error}")
    artifacts: dict[str, list[Artifact]] = {}
    for name, given in executor_input["outputs"]["artifacts"].items():
        left = output.get("artifacts", {}).get(name, {}).get("artifacts") or [{}]
        artifacts[name] = [{**given["artifacts"][0], **artifact} for artifact in left]
    return TaskResult(outputs=Values(parameters, artifacts))

"""Builds small compiled pipelines, as the SDK would write them."""

import json
from typing import Any

import yaml

from clew.pipelines.spec.ir import Pipeline
from clew.pipelines.spec.parser import parse_pipeline

COMMAND = ["sh", "-ec", "python3 -m kfp.dsl.executor_main", "def f(): pass"]
ARGUMENTS = ["--executor_input", "{{$}}", "--function_to_execute", "f"]


def leaf(
    inputs: dict[str, str] | None = None, outputs: dict[str, str] | None = None
) -> dict[str, Any]:
    """A component that is run; a type ending in `?` is that of an optional input."""
    return {
        "executorLabel": "exec",
        "inputDefinitions": {"parameters": {n: parameter(t) for n, t in (inputs or {}).items()}},
        "outputDefinitions": {"parameters": {n: parameter(t) for n, t in (outputs or {}).items()}},
    }


def parameter(kind: str) -> dict[str, Any]:
    optional = {"isOptional": True} if kind.endswith("?") else {}
    return {"parameterType": kind.rstrip("?"), **optional}


def task(component: str, after: list[str] | None = None, **more: Any) -> dict[str, Any]:
    parameters = more.pop("parameters", {})
    found = {"componentRef": {"name": component}, "inputs": {"parameters": parameters}, **more}
    return found | ({"dependentTasks": after} if after else {})


def made(by: str, output: str = "Output") -> dict[str, Any]:
    return {"taskOutputParameter": {"producerTask": by, "outputParameterKey": output}}


def constant(value: Any) -> dict[str, Any]:
    return {"runtimeValue": {"constant": value}}


def document(tasks: dict[str, Any], components: dict[str, Any], **root: Any) -> dict[str, Any]:
    return {
        "pipelineInfo": {"name": "p"},
        "schemaVersion": "2.1.0",
        "components": components,
        "deploymentSpec": {
            "executors": {"exec": {"container": {"command": COMMAND, "args": ARGUMENTS}}}
        },
        "root": {"dag": {"tasks": tasks, **root.pop("dag", {})}, **root},
    }


def pipeline(tasks: dict[str, Any], components: dict[str, Any], **root: Any) -> Pipeline:
    return parse_pipeline(json.dumps(document(tasks, components, **root)))


def text(*documents: dict[str, Any]) -> str:
    return str(yaml.safe_dump_all(documents))

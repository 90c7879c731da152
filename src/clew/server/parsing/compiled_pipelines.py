"""Compiled pipelines between the wire and the catalogue.

The catalogue keeps JSON: the pipeline in one line, and what it asks of a platform, if anything, in
another, with `---` between them; that is YAML as well. So it is never parsed to be shown. Whether
a pipeline is one is looked at here; whether it can run here is found out when it runs.
"""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import UsageError
from clew.server.parsing import yaml_documents

_BETWEEN = "\n---\n"
_MOST_DOCUMENTS = 2
_HINT = "compile it with the kfp SDK"


def read(text: str) -> str:
    """How the catalogue keeps the pipeline that a text of YAML or JSON holds."""
    if text.lstrip()[:1] == "{":
        try:
            return from_wire(msgspec.json.decode(text))
        except msgspec.MsgspecError:  # YAML may begin like this as well
            pass
        except RecursionError as error:
            raise UsageError("it is nested too deep", hint=_HINT) from error
    return text_of(yaml_documents.documents(text))


def text_of(documents: list[Any]) -> str:
    """How the catalogue keeps a pipeline of these documents."""
    if not documents:
        raise UsageError("the pipeline is empty", hint=_HINT)
    if len(documents) > _MOST_DOCUMENTS:
        raise UsageError(f"it has {len(documents)} documents, more than two", hint=_HINT)
    _check(documents[0])
    for platform in documents[1:]:
        _mapping(platform, "the platform document")
        _mapping(platform.get("platforms", {}), "platforms")
    return _BETWEEN.join(msgspec.json.encode(one).decode() for one in documents if one)


def from_wire(sent: Any) -> str:
    """How the catalogue keeps a pipeline that came in a request: the document, or both in one."""
    if not isinstance(sent, dict):
        raise UsageError("pipeline_spec is no object", hint=_HINT)
    inner = sent.get("pipeline_spec", sent.get("pipelineSpec"))
    if inner is None:
        return text_of([sent])
    platform = sent.get("platform_spec", sent.get("platformSpec"))
    return text_of([inner, platform] if platform else [inner])


def on_wire(text: str) -> msgspec.Raw:
    """As it came."""
    pipeline, _, platform = text.partition(_BETWEEN)
    if not platform:
        return msgspec.Raw(pipeline.encode())
    return msgspec.Raw(f'{{"pipeline_spec":{pipeline},"platform_spec":{platform}}}'.encode())


def _check(document: Any) -> None:
    _mapping(document, "the pipeline")
    if document.get("apiVersion") and document.get("kind"):
        raise UsageError(
            f"a {document['kind']} of {document['apiVersion']} is no compiled pipeline",
            hint="compile it with version 2 of the kfp SDK",
        )
    for needed in ("pipelineInfo", "root"):
        if needed not in document:
            raise UsageError(f"it is no compiled pipeline: {needed} is missing", hint=_HINT)
    name = _mapping(document["pipelineInfo"], "pipelineInfo").get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("pipelineInfo.name is missing, or no text", hint=_HINT)
    if not str(document.get("schemaVersion", "")).startswith("2."):
        raise UsageError("schemaVersion is missing, or not 2.x", hint=_HINT)
    root = _mapping(document["root"], "root")
    tasks = _mapping(_mapping(root.get("dag"), "root.dag").get("tasks"), "root.dag.tasks")
    for key, task in tasks.items():
        _mapping(task, f"root.dag.tasks.{key}")
    for key, component in _mapping(document.get("components", {}), "components").items():
        _mapping(component, f"components.{key}")
    deployment = _mapping(document.get("deploymentSpec", {}), "deploymentSpec")
    _mapping(deployment.get("executors", {}), "deploymentSpec.executors")


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{place} is missing, or no mapping", hint=_HINT)
    return value

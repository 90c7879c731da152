"""Convert compiled pipelines between what clients send and what the catalogue stores.

The catalogue stores JSON: the pipeline in one line and the platform document, if there is one, in
another, with `---` between them, which is also valid YAML. So a stored pipeline is never parsed in
order to be shown. This module checks the shape of a pipeline; the parser of `pipelines` checks
whether it can run.
"""

from typing import Any

import msgspec

from clew.bounded_documents import load_documents
from clew.errors import UsageError

_SEPARATOR = "\n---\n"
_HINT = "compile it with the kfp SDK: kfp dsl compile --py pipeline.py --output pipeline.yaml"


def normalize_text(text: str) -> str:
    """The stored form of a pipeline given as YAML or JSON."""
    try:
        documents = load_documents(text)
    except UsageError as error:
        raise UsageError(error.message, hint=_HINT) from error
    if len(documents) == 1 and isinstance(documents[0], dict):
        return normalize_object(documents[0])
    return _join(documents)


def normalize_object(sent: Any) -> str:
    """The stored form of a pipeline given as an object: the pipeline itself, or
    `{pipeline_spec, platform_spec}`."""
    if not isinstance(sent, dict):
        raise UsageError("pipeline_spec is not an object", hint=_HINT)
    pipeline = sent.get("pipeline_spec", sent.get("pipelineSpec"))
    if pipeline is None:
        return _join([sent])
    platform = sent.get("platform_spec", sent.get("platformSpec"))
    return _join([pipeline, platform] if platform else [pipeline])


def to_response(text: str) -> msgspec.Raw:
    """The object that Kubeflow's API answers for a stored pipeline."""
    pipeline, _, platform = text.partition(_SEPARATOR)
    if not platform:
        return msgspec.Raw(pipeline.encode())
    return msgspec.Raw(f'{{"pipeline_spec":{pipeline},"platform_spec":{platform}}}'.encode())


def description_of(text: str) -> str:
    """The description of a stored pipeline; empty if it has none."""
    info = msgspec.json.decode(text.partition(_SEPARATOR)[0])["pipelineInfo"]
    description = info.get("description")
    return description if isinstance(description, str) else ""


def split_stored(text: str) -> tuple[msgspec.Raw, msgspec.Raw | None]:
    """The pipeline and the platform document of a stored pipeline, as JSON."""
    pipeline, _, platform = text.partition(_SEPARATOR)
    return msgspec.Raw(pipeline.encode()), msgspec.Raw(platform.encode()) if platform else None


def _join(documents: list[Any]) -> str:
    if not documents:
        raise UsageError("the pipeline is empty", hint=_HINT)
    if len(documents) > 2:
        raise UsageError(f"it has {len(documents)} documents, more than two", hint=_HINT)
    _check_pipeline(documents[0])
    for platform in documents[1:]:
        _require_mapping(platform, "the platform document")
        _require_mapping(platform.get("platforms", {}), "platforms")
    return _SEPARATOR.join(msgspec.json.encode(one).decode() for one in documents if one)


def _check_pipeline(document: Any) -> None:
    _require_mapping(document, "the pipeline")
    if document.get("apiVersion") and document.get("kind"):
        raise UsageError(
            f"a {document['kind']} of {document['apiVersion']} is not a compiled pipeline",
            hint="compile it with version 2 of the kfp SDK",
        )
    for key in ("pipelineInfo", "root"):
        if key not in document:
            raise UsageError(f"not a compiled pipeline: {key} is missing", hint=_HINT)
    name = _require_mapping(document["pipelineInfo"], "pipelineInfo").get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("pipelineInfo.name is missing, or not a string", hint=_HINT)
    if not str(document.get("schemaVersion", "")).startswith("2."):
        raise UsageError("schemaVersion is missing, or not 2.x", hint=_HINT)
    root = _require_mapping(document["root"], "root")
    dag = _require_mapping(root.get("dag"), "root.dag")
    for key, task in _require_mapping(dag.get("tasks"), "root.dag.tasks").items():
        _require_mapping(task, f"root.dag.tasks.{key}")
    for key, component in _require_mapping(document.get("components", {}), "components").items():
        _require_mapping(component, f"components.{key}")
    deployment = _require_mapping(document.get("deploymentSpec", {}), "deploymentSpec")
    _require_mapping(deployment.get("executors", {}), "deploymentSpec.executors")


def _require_mapping(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name} is missing, or not a mapping", hint=_HINT)
    return value

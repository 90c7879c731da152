"""The pipeline of a new run or schedule: sent with the request, or a stored pipeline version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs
from clew.prov.graph import Graph
from clew.server.catalogue import pipelines, versions
from clew.server.kfp.request_fields import Fields
from clew.server.kfp.responses import without_empty
from clew.server.parsing import compiled_pipelines


@dataclass(frozen=True)
class Source:
    """`spec` is the text sent with the request; if None, `version` and `digest` are set."""

    spec: str | None = None
    pipeline: str | None = None
    version: str | None = None
    digest: str = ""

    def text(self, graph: Graph) -> str:
        if self.spec is not None:
            return self.spec
        text = pipeline_specs.texts_of(graph, [self.digest]).get(self.digest)
        if text is None:
            raise NotFound(f"the pipeline version {self.version} was just deleted")
        return text


def find_source(graph: Graph, body: Fields) -> Source:
    """The pipeline that the request names. It must name exactly one."""
    spec = body.value("pipeline_spec")
    reference = body.object("pipeline_version_reference") or Fields({})
    pipeline, version = reference.id("pipeline_id"), reference.id("pipeline_version_id")
    version = version or body.id("pipeline_version_id")
    if spec is not None and (pipeline or version):
        raise UsageError("give pipeline_spec or pipeline_version_reference, not both")
    if spec is not None:
        return Source(compiled_pipelines.normalize_object(spec))
    if not pipeline and not version:
        raise UsageError("pipeline_spec or pipeline_version_reference is missing")
    if pipeline:
        pipelines.get(graph, pipeline)
    resolved = versions.resolve(graph, pipeline, version)
    return Source(pipeline=resolved.pipeline, version=resolved.id, digest=resolved.spec)


def reference(pipeline: str | None, version: str | None) -> dict[str, Any]:
    return without_empty(pipeline_id=pipeline, pipeline_version_id=version)


def read_config(body: Fields) -> dict[str, Any]:
    """The parameters and the pipeline root of a run."""
    config = body.object("runtime_config") or Fields({})
    parameters = config.value("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise UsageError("runtime_config.parameters must be an object")
    return without_empty(parameters=parameters, pipeline_root=config.text("pipeline_root"))

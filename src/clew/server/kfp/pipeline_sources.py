"""What a run, or every run of a schedule, is of: a pipeline that was sent along, or one that is
known here by its version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clew.errors import NotFound, UsageError
from clew.prov.graph import Graph
from clew.server.catalogue import pipeline_specs, pipelines, versions
from clew.server.kfp.request_fields import Fields
from clew.server.kfp.responses import without_empty
from clew.server.parsing import compiled_pipelines


@dataclass(frozen=True)
class Source:
    """`spec` is a text that was sent; without one the version has it."""

    spec: str | None = None
    pipeline: str | None = None
    version: str | None = None
    digest: str = ""

    def text(self, graph: Graph) -> str:
        if self.spec is not None:
            return self.spec
        found = pipeline_specs.texts_of(graph, [self.digest]).get(self.digest)
        if found is None:
            raise NotFound(f"the pipeline version {self.version} was just deleted")
        return found


def found(graph: Graph, sent: Fields) -> Source:
    """What was asked for; there is one, or it is refused."""
    spec = sent.value("pipeline_spec")
    named = sent.part("pipeline_version_reference") or Fields({})
    pipeline, version = named.id("pipeline_id"), named.id("pipeline_version_id")
    version = version or sent.id("pipeline_version_id")
    if spec is not None and (pipeline or version):
        raise UsageError("both pipeline_spec and pipeline_version_reference are given")
    if spec is not None:
        return Source(compiled_pipelines.normalize_object(spec))
    if not pipeline and not version:
        raise UsageError("neither pipeline_spec nor pipeline_version_reference is given")
    if pipeline:
        pipelines.get(graph, pipeline)
    one = versions.resolve(graph, pipeline, version)
    return Source(pipeline=one.pipeline, version=one.id, digest=one.spec)


def reference(pipeline: str | None, version: str | None) -> dict[str, Any]:
    return without_empty(pipeline_id=pipeline, pipeline_version_id=version)


def config(sent: Fields) -> dict[str, Any]:
    """What a run is given."""
    given = sent.part("runtime_config") or Fields({})
    parameters = given.value("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise UsageError("runtime_config.parameters is no object")
    return without_empty(parameters=parameters, pipeline_root=given.text("pipeline_root"))

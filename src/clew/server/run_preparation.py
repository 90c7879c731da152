"""Check the request for a new run or schedule: which pipeline, with which parameters."""

from dataclasses import dataclass
from typing import Any

from clew.bounded_documents import check_depth
from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs
from clew.pipelines.runs.run_queue import NewRun
from clew.pipelines.spec import arguments, parser
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments, pipelines, versions
from clew.server.parsers import compiled_pipelines


@dataclass(frozen=True)
class PipelineSource:
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


def find_source(
    graph: Graph, *, spec: str | None, pipeline: str | None, version: str | None, hint: str
) -> PipelineSource:
    """The pipeline that a request names: by its text (in stored form), or by ids. `hint`: how a
    request names exactly one."""
    if (spec is not None) == bool(pipeline or version):
        raise UsageError("give exactly one pipeline to run", hint=hint)
    if spec is not None:
        return PipelineSource(spec)
    if pipeline:
        pipelines.get(graph, pipeline)
    resolved = versions.resolve(graph, pipeline or "", version or "")
    return PipelineSource(pipeline=resolved.pipeline, version=resolved.id, digest=resolved.spec)


def prepare_run(
    graph: Graph,
    *,
    spec: str | None,
    pipeline: str | None,
    version: str | None,
    experiment: str | None,
    name: str | None,
    description: str,
    parameters: dict[str, Any],
    jobs: int | None = None,
    reuse: bool = True,
) -> NewRun:
    """The run that a request asks for. An invalid pipeline or parameter is refused."""
    if spec is not None:
        spec = compiled_pipelines.normalize_text(spec)
    hint = "either spec, or pipeline and version"
    source = find_source(graph, spec=spec, pipeline=pipeline, version=version, hint=hint)
    text = source.text(graph)
    check_depth(parameters, "parameters")
    parsed = parser.parse_pipeline(text)
    arguments.bind_values(parsed, parameters)
    return NewRun(
        experiment=experiments.require_active(graph, experiment or ""),
        name=name or parsed.name,
        spec=text,
        config={"parameters": parameters, "options": {"jobs": jobs, "reuse": reuse}},
        description=description,
        pipeline=source.pipeline,
        version=source.version,
    )

"""The fields that runs and recurring runs share in Kubeflow's requests and responses."""

from typing import Any

from clew.errors import UsageError
from clew.pipelines.runs.run_queue import RunRequest, RunTemplate
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue.pipelines import experiments
from clew.server.catalogue.pipelines.schedules import Schedule
from clew.server.kfp.request_fields import Fields
from clew.server.kfp.responses import without_empty
from clew.server.parsers import compiled_pipelines
from clew.server.run_preparation import PipelineSource, find_source


def read_template(graph: Graph, body: Fields) -> tuple[RunTemplate, PipelineSource]:
    """Read the common fields of a request, and find its pipeline."""
    name = body.required_name("display_name")
    config = _read_config(body)
    spec = body.value("pipeline_spec")
    reference = body.object("pipeline_version_reference") or Fields({})
    source = find_source(
        graph,
        spec=None if spec is None else compiled_pipelines.normalize_object(spec),
        pipeline=reference.id("pipeline_id"),
        version=reference.id("pipeline_version_id") or body.id("pipeline_version_id"),
        hint="either pipeline_spec or pipeline_version_reference, not both",
    )
    template = RunTemplate(
        experiment=experiments.require_active(graph, body.id("experiment_id")),
        name=name,
        description=body.text("description"),
        pipeline=source.pipeline,
        version=source.version,
        service_account=body.text("service_account"),
        config=config,
    )
    return template, source


def _read_config(body: Fields) -> dict[str, Any]:
    """The parameters and the pipeline root."""
    config = body.object("runtime_config") or Fields({})
    parameters = config.value("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise UsageError("runtime_config.parameters must be an object")
    return without_empty(parameters=parameters, pipeline_root=config.text("pipeline_root"))


def experiment_filter(params: Fields) -> dict[str, str]:
    """The condition of a list of the runs of one experiment; none if the request names none."""
    experiment = params.id("experiment_id")
    return {"experiment": experiment} if experiment else {}


def template_fields(stored: RunRequest | Schedule) -> dict[str, Any]:
    """The common fields of a response."""
    return {
        "experiment_id": stored.experiment,
        "display_name": stored.name,
        "description": stored.description,
        "pipeline_version_reference": without_empty(
            pipeline_id=stored.pipeline, pipeline_version_id=stored.version
        ),
        "runtime_config": {n: v for n, v in stored.config.items() if n != "options"},
        "service_account": stored.service_account,
        "created_at": format_time(stored.created),
    }

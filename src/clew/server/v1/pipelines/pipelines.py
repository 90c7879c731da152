"""Pipelines and experiments with their runs, and the compiled pipelines."""

from typing import Annotated, Any

from fastapi import Path, Query
from msgspec import structs
from pydantic import BaseModel, ConfigDict

from clew.documents.pipelines.catalogue import (
    Experiments,
    PipelineProblem,
    Pipelines,
    PipelineSpec,
    PipelineWithVersions,
    RunTemplate,
)
from clew.errors import ClewError, NotFound, UsageError
from clew.pipelines.run_directory import PIPELINE, RUNS
from clew.pipelines.runs import pipeline_specs, run_list
from clew.pipelines.spec import parser
from clew.server.catalogue.pipelines import pipelines, summaries, versions
from clew.server.parsers import compiled_pipelines
from clew.server.v1.dependencies import ProjectDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.runs.runs import Id

router = DocumentRouter(tags=["pipelines"])

PipelineId = Annotated[Text, Path(description="The id of a pipeline.")]
_MAX_BYTES = 32 << 20


@router.get("/pipelines")
def list_pipelines(
    project: ProjectDep,
    q: Annotated[
        str,
        Query(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description="A part of the name or the description.",
        ),
    ] = "",
    archived: Annotated[bool, Query(description="Also those in the archive.")] = False,
) -> Pipelines:
    found, total = summaries.list_pipelines(project.graph, q, archived=archived)
    return Pipelines(pipelines=tuple(found), total=total)


@router.get("/pipelines/{id}")
def get_pipeline(project: ProjectDep, id: PipelineId) -> PipelineWithVersions:  # noqa: A002
    pipeline = summaries.get_pipeline(project.graph, id)
    found = summaries.list_versions(project.graph, id)
    return PipelineWithVersions(**structs.asdict(pipeline), all_versions=tuple(found))


class Archived(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    archived: bool


@router.put("/pipelines/{id}/archived")
def archive_pipeline(
    project: ProjectDep,
    id: PipelineId,  # noqa: A002
    state: Archived,
) -> PipelineWithVersions:
    """Take a pipeline out of the lists, or back into them. Its runs and schedules stay, and
    clients of Kubeflow Pipelines see it as before."""
    pipelines.set_archived(project.graph, id, state.archived)
    return get_pipeline(project, id)


@router.get("/pipelines/{id}/versions/{version}")
def get_version(project: ProjectDep, id: PipelineId, version: Text) -> PipelineSpec:  # noqa: A002
    """The compiled pipeline of a version, and whether it can run here."""
    found = versions.get(project.graph, id, version)
    return _describe(pipeline_specs.text_of(project.graph, found.spec))


@router.get("/runs/{id}/template")
def get_run_template(project: ProjectDep, id: Id) -> RunTemplate:  # noqa: A002
    """The pipeline and the options of a run, to start another one like it."""
    graph = project.graph
    run = run_list.get_run_summary(graph, id, alive=project.is_alive)
    request = run_list.find_request(graph, run.uid)
    options: dict[str, Any] = {}
    if request is None:
        text, parameters = _read_recorded(project, run.id), run.inputs
    else:
        text = pipeline_specs.text_of(graph, request.spec)
        options = request.config.get("options") or {}
        parameters = request.config.get("parameters") or {}
    source = None
    if request is not None and request.pipeline and request.version:
        try:
            source = versions.get(graph, request.pipeline, request.version)
        except NotFound:
            source = None
    return RunTemplate(
        **structs.asdict(_describe(text)),
        name=(request.name if request else run.name) or "",
        description=request.description if request else "",
        pipeline=source.pipeline if source else None,
        version=source.id if source else None,
        experiment=run.experiment,
        parameters=parameters,
        reuse=bool(options.get("reuse", True)),
        jobs=options.get("jobs"),
    )


@router.get("/experiments")
def list_experiments(project: ProjectDep) -> Experiments:
    return Experiments(experiments=tuple(summaries.list_experiments(project.graph)))


def _read_recorded(project: ProjectDep, run: str | None) -> str:
    """The pipeline of a run that was started with the command line."""
    file = project.root / RUNS / str(run) / PIPELINE
    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{file} is larger than {_MAX_BYTES >> 20} MB")
        return compiled_pipelines.normalize_text(data.decode())
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(
            f"the pipeline of {run} cannot be read: {error}",
            hint="its file is gone, or the run was recorded elsewhere; upload the pipeline again",
        ) from error


def _describe(text: str) -> PipelineSpec:
    spec, platform = compiled_pipelines.split_stored(text)
    warnings: tuple[str, ...] = ()
    problem = None
    try:
        warnings = parser.parse_pipeline(text).warnings
    except ClewError as error:
        problem = PipelineProblem(message=error.message, hint=error.hint)
    return PipelineSpec(spec=spec, platform=platform, warnings=warnings, problem=problem)

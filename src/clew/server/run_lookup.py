"""Joins what is known of a pipeline run: its request (catalogue) and its record (graph).

A run requested from the server is in the catalogue at once, and in the graph once it has started. A
run started by hand with the CLI is only in the graph.
"""

from __future__ import annotations

from typing import Any

from clew.api.local.project import LocalProject
from clew.bounded_documents import check_depth
from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs, run_list, run_queue
from clew.pipelines.runs.run_queue import FINAL_STATES, NewRun, Run
from clew.pipelines.spec import arguments, parser
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.prov.queries.pipelines.runs import find_run, get_run
from clew.server.catalogue import experiments, versions
from clew.server.parsing import compiled_pipelines

_STATES = {"queued": "pending", "running": "running"}


def run_document(project: LocalProject, text: str, *, tasks: bool = True) -> dict[str, Any]:
    """The current state of the run that `text` names by id (`r1`) or uid."""
    graph = project.graph
    try:
        recorded = get_run(graph, text, alive=project.is_alive, tasks=tasks)
    except NotFound:
        request = run_list.find_request(graph, text)
        if request is None:
            raise
        return {**_pending_document(request), **({"tasks": []} if tasks else {})}
    request = run_list.find_request(graph, recorded["uid"])
    if request is None:
        return {**recorded, "created": recorded["started"], "experiment": None}
    state = _STATES.get(request.state, request.state)
    # An interrupted run is resumed: its recorded error does not count while it is queued.
    error = None if state in ("pending", "running") else request.error or recorded["error"]
    return {
        **recorded,
        "state": state,
        "error": error,
        "created": format_time(request.created),
        "experiment": request.experiment,
    }


def _pending_document(request: Run) -> dict[str, Any]:
    state = "pending" if request.state in _STATES else request.state
    return {
        "id": None,
        "uid": request.id,
        "name": request.name,
        "state": state,
        "started": None,
        "ended": format_time(request.finished),
        "seconds": None,
        "file": None,
        "inputs": request.config.get("parameters") or {},
        "outputs": {},
        "error": request.error,
        "created": format_time(request.created),
        "experiment": request.experiment,
    }


def find_run_uid(graph: Graph, text: str) -> str:
    """The uid of the run that `text` names."""
    try:
        return find_run(graph, text).uid
    except NotFound:
        if run_list.find_request(graph, text) is None:
            raise
        return text


def is_finished(project: LocalProject, uid: str) -> bool:
    """Whether the run has ended; only a retry can start it again."""
    request = run_list.find_request(project.graph, uid)
    return not project.is_alive(uid) and (request is None or request.state in FINAL_STATES)


def queue_run(
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
) -> str:
    """Queue a run and return its uid. An invalid pipeline or parameter is refused here."""
    if (spec is None) == (pipeline is None and version is None):
        raise UsageError(
            "give exactly one pipeline to run", hint="either spec, or pipeline and version"
        )
    if spec is None:
        resolved = versions.resolve(graph, pipeline or "", version or "")
        pipeline, version = resolved.pipeline, resolved.id
        spec = pipeline_specs.text_of(graph, resolved.spec)
    else:
        spec = compiled_pipelines.normalize_text(spec)
    check_depth(parameters, "parameters")
    parsed = parser.parse_pipeline(spec)
    arguments.bind_values(parsed, parameters)
    return run_queue.create(
        graph,
        NewRun(
            experiment=experiments.require_active(graph, experiment or ""),
            name=name or parsed.name,
            spec=spec,
            config={"parameters": parameters, "options": {"jobs": jobs, "reuse": reuse}},
            description=description,
            pipeline=pipeline,
            version=version,
        ),
    )

"""Pipeline runs as one thing: what was asked for, and what came of it.

A run that was asked for is known to the catalogue at once, and to the graph when it has begun; one
that somebody ran by hand, to the graph alone.
"""

from __future__ import annotations

from typing import Any

from clew.api.local.project import LocalProject
from clew.bounded_documents import check_depth
from clew.errors import NotFound, UsageError
from clew.pipelines.spec import arguments, parser
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.prov.queries.pipelines.runs import find_run, get_run
from clew.server.catalogue import experiments, pipeline_specs, run_list, runs, versions
from clew.server.catalogue.runs import FINAL_STATES, NewRun, Run
from clew.server.parsing import compiled_pipelines

_STATES = {"queued": "pending", "running": "running"}


def run_document(project: LocalProject, text: str, *, tasks: bool = True) -> dict[str, Any]:
    """The run that `text` names (`r1`, or its uid), as it is now."""
    graph = project.graph
    try:
        found = get_run(graph, text, alive=project.is_alive, tasks=tasks)
    except NotFound:
        asked = run_list.find_request(graph, text)
        if asked is None:
            raise
        return {**_unbegun(asked), **({"tasks": []} if tasks else {})}
    asked = run_list.find_request(graph, found["uid"])
    if asked is None:
        return {**found, "created": found["started"], "experiment": None}
    state = _STATES.get(asked.state, asked.state)
    # One that was cut off is gone on with: it has not failed while it is still wanted.
    error = None if state in ("pending", "running") else asked.error or found["error"]
    return {
        **found,
        "state": state,
        "error": error,
        "created": format_time(asked.created),
        "experiment": asked.experiment,
    }


def _unbegun(asked: Run) -> dict[str, Any]:
    state = "pending" if asked.state in _STATES else asked.state
    return {
        "id": None,
        "uid": asked.id,
        "name": asked.name,
        "state": state,
        "started": None,
        "ended": format_time(asked.finished),
        "seconds": None,
        "file": None,
        "inputs": asked.config.get("parameters") or {},
        "outputs": {},
        "error": asked.error,
        "created": format_time(asked.created),
        "experiment": asked.experiment,
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
    """Whether nothing more will happen to a run, unless somebody asks for it again."""
    asked = run_list.find_request(project.graph, uid)
    return not project.is_alive(uid) and (asked is None or asked.state in FINAL_STATES)


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
    """Ask for a run; what can be known to be wrong with it is said at once."""
    if (spec is None) == (pipeline is None and version is None):
        raise UsageError("a run is of one pipeline", hint="give spec, or pipeline and version")
    if spec is None:
        found = versions.resolve(graph, pipeline or "", version or "")
        pipeline, version = found.pipeline, found.id
        spec = pipeline_specs.text_of(graph, found.spec)
    else:
        spec = compiled_pipelines.normalize_text(spec)
    check_depth(parameters, "parameters")
    parsed = parser.parse(spec)
    arguments.fit(parsed, parameters)
    return runs.create(
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

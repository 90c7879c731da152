"""Summarize an execution for `clew show`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import structs

from clew.documents.executions.summary import ExecutionSummary, OwnFile, OwnFiles, RequestedPackage
from clew.errors import NotFound
from clew.prov.export.requirements_reports import list_requested_packages
from clew.prov.queries.executions import find_execution
from clew.prov.queries.files import File, list_files
from clew.prov.queries.formats import execution_id, path_fields
from clew.prov.queries.lineage.derived_executions import Derivations
from clew.prov.queries.notes import list_notes
from clew.prov.queries.pipelines.runs import get_task
from clew.prov.queries.show import describe_file, load_facets
from clew.prov.queries.targets import Target
from clew.replay.repeat.parameters import list_parameters

if TYPE_CHECKING:
    from clew.documents.executions import detail
    from clew.documents.executions.detail import ExecutionDetail
    from clew.documents.executions.execution_list import Execution
    from clew.documents.ids import ExecutionId
    from clew.prov.graph import Graph

MOST_FILES = 100
"""Inputs and outputs that are listed; --detail lists all."""
_SHELLS = ("sh", "bash", "dash", "zsh")
_CLASSES = ("data", "configuration", "source")
_NOT_SHOWN = re.compile(
    r"/__pycache__/|/clew/pipelines/tasks/[a-z_/]+\.py$|/executor_(?:input|output)\.json$"
)
"""Files that programs make beside the user's own: compiled modules, and those with which tasks of
pipelines are started."""


def summarize(graph: Graph, execution: ExecutionDetail) -> ExecutionSummary:
    found = find_execution(graph, execution.uid)
    packages = load_facets(graph, found.key)[0].get("packages")
    described = [
        (file, describe_file(file, packages if isinstance(packages, dict) else {}))
        for file in list_files(graph, found.key)
    ]
    own = [(file, facts) for file, facts in described if is_own(facts)]
    derivations = Derivations(graph, found, (file for file, _ in own))
    makers = {
        locator: execution_id(number)
        for locator, (number, how) in derivations.find_makers().items()
        if how == "file"
    }

    def choose(role: str) -> OwnFiles:
        chosen = [(file, facts) for file, facts in own if facts.role == role]
        chosen.sort(key=lambda pair: _rank(pair[1], execution.cwd))
        files = (_own_file(file, facts, makers.get(file.locator)) for file, facts in chosen)
        return OwnFiles(total=len(chosen), files=tuple(files)[:MOST_FILES])

    return ExecutionSummary(
        **structs.asdict(execution),
        notes=tuple(list_notes(graph, Target("execution", found.id, (found.key,)))),
        parameters=_find_parameters(graph, execution),
        packages=tuple(
            RequestedPackage(manager=p["manager"], name=p["name"], version=p["version"])
            for p in list_requested_packages([facts.as_json() for _, facts in described])
        ),
        own_inputs=choose("input"),
        own_outputs=choose("output"),
        derived_from=derivations.derived_from(),
        derived=derivations.derived(),
    )


def is_own(facts: detail.File) -> bool:
    return facts.category in _CLASSES and not _NOT_SHOWN.search(facts.path)


def _rank(facts: detail.File, cwd: str | None) -> tuple[object, ...]:
    """Files below the working directory first, streams last, data before code."""
    path = facts.path
    inside = cwd is not None and path.startswith(f"{cwd}/")
    return not path.startswith("/"), not inside, _CLASSES.index(facts.category), path


def _own_file(file: File, facts: detail.File, made_by: ExecutionId | None) -> OwnFile:
    return OwnFile(
        **path_fields(file.locator),
        class_=facts.category,
        size=facts.size,
        digest=facts.digest,
        made_by=made_by if facts.role == "input" else None,
    )


def _find_parameters(graph: Graph, execution: Execution) -> dict[str, Any]:
    """The parameters of the pipeline task that it is, else the options of the command."""
    if execution.task and not execution.made_elsewhere:
        try:
            task = get_task(graph, execution.task, alive=lambda _: False)
        except NotFound:  # the run was removed
            return {}
        if execution.id in task.attempts:
            return task.parameters
    words = execution.command
    if words[1:2] == ("-c",) and words[0].rpartition("/")[2] in _SHELLS:
        words = words[2:]
    found = {p.prefix + p.name: p.value for p in list_parameters(words)}
    return {name: True if value is None else value for name, value in found.items()}

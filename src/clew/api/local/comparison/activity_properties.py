"""The properties of an execution or a pipeline run that can be compared.

The environment and the packages of a run are those of its first task that has run; its code is the
code of its components.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from os.path import relpath
from typing import Any

from clew.api.local.comparison.table import Properties
from clew.api.local.executions import show_execution
from clew.api.local.summary import is_own
from clew.api.metric_collection import Measured, parse_parameter
from clew.api.project_context import ProjectState
from clew.documents.comparisons.side_by_side import SectionName
from clew.documents.executions.detail import ExecutionDetail
from clew.documents.ids import VersionId
from clew.documents.pipelines.runs import RunWithTasks, Task
from clew.prov import package_urls
from clew.prov.queries.executions import ExecutionRef, find_execution
from clew.prov.queries.files import File, list_files
from clew.prov.queries.formats import version_id
from clew.prov.queries.show import describe_file, load_facets

_MOST_VALUES = 2000
"""Values of one kind that are taken from a record, which may have been made elsewhere."""
_IDENTITIES = frozenset({"boot", "machine", "streams", "begun", "user"})
"""Facets that differ between any two executions, and explain nothing."""


def describe_execution(project: ProjectState, measured: Measured) -> Properties:
    properties = Properties()
    _add_values(properties, measured)
    found = find_execution(project.graph, measured.id)
    shown = show_execution(project, found.id, detail=False)
    command = " ".join(map(shlex.quote, shown.command))
    properties.add("command", {"command": command, "directory": shown.cwd, "user": shown.agent})
    properties.add("git", _known(shown.git))
    properties.add("environment", dict(_flatten(_environment(shown))))
    facets, _ = load_facets(project.graph, found.key)
    properties.add("packages", dict(_package_versions(facets.get("packages"))))
    for file in list_files(project.graph, found.key):
        _add_file(properties, found, file, shown.cwd or "/")
    return properties


def describe_run(project: ProjectState, measured: Measured, run: RunWithTasks) -> Properties:
    properties = Properties()
    _add_values(properties, measured)
    properties.add("command", {"pipeline": run.name, "file": run.file})
    for task in run.tasks:
        _add_task(properties, task)
    ran = next((task.execution for task in run.tasks if task.execution), None)
    if ran is not None:
        found = find_execution(project.graph, ran)
        shown = show_execution(project, found.id, detail=False)
        properties.add("git", _known(shown.git))
        properties.add("environment", dict(_flatten(_environment(shown))))
        facets, _ = load_facets(project.graph, found.key)
        properties.add("packages", dict(_package_versions(facets.get("packages"))))
    return properties


def _add_values(properties: Properties, measured: Measured) -> None:
    parameters = {name: _plain(parse_parameter(v)) for name, v in measured.parameters.items()}
    properties.add("parameters", parameters)
    properties.add("metrics", measured.as_json()["metrics"])


def _add_task(properties: Properties, task: Task) -> None:
    parameters = {f"{task.name}.{name}": _plain(value) for name, value in task.parameters.items()}
    properties.add("inputs", parameters)
    for name, artifacts in task.artifacts.items():
        for artifact in artifacts:
            value = artifact.digest or _plain(artifact.metadata)
            properties.add_file("outputs", f"{task.name}:{name}", value, artifact.version)
    outputs = {f"{task.name}.{name}": _plain(value) for name, value in task.outputs.items()}
    properties.add("outputs", outputs)
    parts = {name: task.parts.get(name) for name in ("code", "image")}
    properties.add("code", {f"{task.name} {n}": _plain(v) for n, v in parts.items() if v})


def _add_file(properties: Properties, found: ExecutionRef, file: File, cwd: str) -> None:
    """The user's own files; a digest stands for the content."""
    facts = describe_file(file, {})
    if not is_own(facts) or facts.role == "transient" or facts.digest is None:
        return
    section: SectionName = "outputs" if facts.role == "output" else "inputs"
    if facts.category == "source" and facts.role == "input":
        section = "code"
    version: VersionId | None = None
    if facts.stored:
        version = version_id(found.number, file.locator, file.left.ordinal)
    properties.add_file(section, _relative(facts.path, cwd), facts.digest, version)


def _relative(path: str, cwd: str) -> str:
    """A path below the working directory, relative to it: projects may have moved."""
    inside = path.startswith(f"{cwd.rstrip('/')}/")
    return relpath(path, cwd) if inside else path


def _environment(shown: ExecutionDetail) -> dict[str, Any]:
    return {name: v for name, v in shown.environment.items() if name not in _IDENTITIES}


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested objects, by their paths: `variables.PATH`."""
    waiting = [(name, value)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        name, value = waiting.pop()
        if isinstance(value, dict):
            prefix = f"{name}." if name else ""
            inner = list(value.items())[:_MOST_VALUES]
            waiting += [(f"{prefix}{key}", one) for key, one in reversed(inner)]
        else:
            yield name, _plain(value)


def _package_versions(packages: Any) -> Iterator[tuple[str, str]]:
    for url in list(packages)[:_MOST_VALUES] if isinstance(packages, dict) else ():
        try:
            package = package_urls.parse_purl(url)
        except ValueError:
            continue
        yield f"{package.manager} {package.name}", package.version


def _known(git: dict[str, Any] | None) -> dict[str, Any]:
    return {n: _plain(v) for n, v in git.items()} if isinstance(git, dict) else {}


def _plain(value: Any) -> Any:
    """A text, number or boolean."""
    return value if isinstance(value, str | int | float | bool | None) else json.dumps(value)

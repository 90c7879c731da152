"""Candidates for ids, runs, tasks, artifacts and recorded paths; none outside a project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from clew.api.project import Project
    from clew.documents.executions.detail import ExecutionDetail

_HELP_LENGTH = 60


def complete_executions(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids and names of executions, ids of runs, and behind `r1/` the tasks of a run."""
    return _search(incomplete, _list_tasks if "/" in incomplete else _list_ids)


def complete_targets(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Executions and files; behind `e1:` the recorded paths, behind `r1/train:` the artifacts."""
    if ":" in incomplete:
        found = _search(incomplete, _list_parts)
        if found:
            return found
    return [
        *complete_executions(ctx, param, incomplete),
        CompletionItem(incomplete, type="file"),
    ]


def complete_filters(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The filters of `clew list`: behind `tag:` the tags, behind `name:` the names."""
    return _search(incomplete, _list_filters)


def complete_tags(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return _search(incomplete, _list_tags)


def complete_runs(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return _search(incomplete, _list_run_ids)


def complete_tasks(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`r1/train`, step by step: the run, then its tasks."""
    if "/" in incomplete:
        return _search(incomplete, _list_tasks)
    found = _search(incomplete, _list_run_ids)
    for item in found:
        item.value += "/"
    return found


def complete_files(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _search(
    incomplete: str, find: Callable[[Project, str], Iterable[tuple[str, str]]]
) -> list[CompletionItem]:
    import clew
    from clew.errors import ClewError

    try:
        with clew.open() as project:
            found = list(find(project, incomplete))
    except ClewError:
        return []
    return [
        CompletionItem(text, help=help_[:_HELP_LENGTH])
        for text, help_ in found
        if text.startswith(incomplete)
    ]


def _list_ids(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    from clew.cli.output import format_command

    for n, execution in enumerate(project.select().executions):
        if n == 0:
            yield "latest", format_command(execution.command)
        for word in filter(None, (execution.id, execution.name)):
            yield word, format_command(execution.command)
    yield from _list_runs(project, incomplete)


def _list_filters(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    for state in ("running", "done", "failed", "broken"):
        yield f"state:{state}", ""
    for origin in ("elsewhere", "here"):
        yield f"made:{origin}", ""
    for execution in project.select().executions:
        if execution.name:
            yield f"name:{execution.name}", ""
    for tag, _ in _list_tags(project, incomplete):
        yield f"tag:{tag}", ""


def _list_tags(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    tags = {tag for execution in project.select().executions for tag in execution.tags}
    return ((tag, "") for tag in sorted(tags))


def _list_runs(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    for run in reversed(project.pipelines.list()):
        yield run.id or run.uid, f"{run.name}, {run.state}"


def _list_run_ids(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    """As `_list_runs`, with `latest`, which elsewhere is an execution."""
    for n, (text, help_) in enumerate(_list_runs(project, incomplete)):
        if n == 0:
            yield "latest", help_
        yield text, help_


def _list_tasks(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    run = incomplete.partition("/")[0]
    for task in project.pipelines.show(run).tasks:
        yield f"{run}/{task.name}", task.state


def _list_parts(project: Project, incomplete: str) -> Iterator[tuple[str, str]]:
    from clew.api.pipeline_artifacts import is_artifact

    owner, _, typed = incomplete.partition(":")
    if is_artifact(f"{owner}:any"):
        task = project.pipelines.task(owner)
        for name, artifacts in task.artifacts.items():
            yield f"{owner}:{name}", artifacts[0].type
        return
    execution = project.show(owner, detail=True)
    for path in _next_steps(_recorded_paths(execution, absolute=typed.startswith("/")), typed):
        yield f"{owner}:{path}", ""


def _recorded_paths(execution: ExecutionDetail, *, absolute: bool) -> Iterator[str]:
    """The user's own files, relative to the working directory; absolute paths only if asked for."""
    below = f"{execution.cwd}/"
    for file in execution.files or ():
        if file.path_b64:
            continue
        path = file.path
        if absolute or not path.startswith("/"):
            yield path
        elif path.startswith(below):
            yield path.removeprefix(below)
        elif file.category not in ("system", "package"):
            yield path


def _next_steps(paths: Iterable[str], typed: str) -> list[str]:
    """As a shell completes files: names up to the next directory."""
    found = set()
    for path in paths:
        if path.startswith(typed):
            rest, slash, _ = path[len(typed) :].partition("/")
            found.add(typed + rest + slash)
    return sorted(found)

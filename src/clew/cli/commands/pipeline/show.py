"""`clew pipeline show`: show a run, its parameters and its tasks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from clew.cli.completion.candidates import complete_runs
from clew.cli.options import json_option, pager_option, web_option
from clew.cli.output import (
    escape,
    format_duration,
    print_json,
    print_line,
    print_message,
    print_table,
)

if TYPE_CHECKING:
    from clew.documents.pipelines.runs import Task


@click.command("show", short_help="Show a run.", epilog="Example: clew pipeline show r1")
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@web_option
@json_option
@pager_option
def command(run: str, web: bool, as_json: bool) -> None:
    """Show a run: its inputs, its outputs, and the state of each task."""
    if web:
        from clew.cli.web_page import open_target

        open_target(run, as_json=as_json)
    else:
        print_run(run, as_json)


def print_run(run: str, as_json: bool) -> None:
    import clew

    with clew.open() as project:
        document = project.pipelines.show(run)
    if as_json:
        print_json(document.as_json())
        return
    took = f" in {format_duration(document.seconds)}" if document.seconds is not None else ""
    id_ = document.id or document.uid
    print_line(f"{id_}  {escape(document.name or '')}  {document.state}{took}")
    if document.error:
        print_line(f"  {escape(document.error)}")
    for title, values in (("inputs", document.inputs), ("outputs", document.outputs)):
        for name, value in values.items():
            print_line(f"  {title[:-1]} {escape(name)} = {_format_json(value)}")
    print_table(("task", "state", "took", "execution", "what"), map(_row, document.tasks))
    failed = [task.id for task in document.tasks if task.error and task.execution]
    if failed:
        print_message(f"hint: clew pipeline logs {escape(failed[0])}")


def _row(task: Task) -> tuple[str, ...]:
    made = [f"{name}={_format_json(value)}" for name, value in task.outputs.items()]
    made += [f"{task.id}:{name}" for name in task.artifacts]
    done = task.state in ("succeeded", "reused")
    reason = task.error or (None if done else task.why)
    made += [f"from {task.reused_from}"] if task.reused_from else []
    where = f"on {task.node}" if task.node else None
    made += [placed] if (placed := task.placement or where) else []
    return (
        task.name,
        task.state,
        format_duration(task.seconds) if task.execution else "",
        task.execution or "",
        reason or "  ".join(made),
    )


def _format_json(value: Any) -> str:
    text = escape(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:59] + "…"

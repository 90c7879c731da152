"""`clew pipeline run`: run a pipeline, and tell on stderr how its tasks go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import json_option
from clew.cli.output import clean, counted, duration, print_json, remark

if TYPE_CHECKING:
    from clew.pipelines.running import Change

_STATUS = {"succeeded": 0, "failed": 1, "canceled": 130}


@click.command(
    "run",
    short_help="Run a pipeline.",
    epilog="Example: clew pipeline run train.yaml -p rate=0.1 -p epochs=3",
)
@click.argument("file", metavar="FILE.yaml|FILE.py", type=click.Path(path_type=Path))
@click.option(
    "-p", "parameters", metavar="NAME=VALUE", multiple=True, help="A parameter; repeatable."
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), help="Tasks at once; default: the cores."
)
@click.option("--no-cache", is_flag=True, help="Run every task, also those done before.")
@json_option
def command(
    file: Path, parameters: tuple[str, ...], jobs: int | None, no_cache: bool, as_json: bool
) -> int:
    """Run a compiled pipeline, or the one that a Python file defines, and record every task.

    Tasks are processes of this machine; those that do not need each other run side by side. Exits
    with 1 when the run failed, 130 when it was canceled. Outside a project, one is made in the
    current folder.
    """
    import clew
    from clew.errors import NoProject

    given = dict(map(_parameter, parameters))
    try:
        project = clew.open()
    except NoProject:
        project = clew.init(".")
        remark(f"clew: made a project in {project.root}")
    with project:
        document = project.pipelines.run(
            file,
            given,
            jobs=jobs,
            reuse=not no_cache,
            say=lambda text: remark(f"clew: {clean(text)}"),
            watch=_tell,
        )
    if as_json:
        print_json(document)
    remark(summary(document))
    return _STATUS[document["state"]]


def summary(document: dict[str, Any]) -> str:
    """The one line at the end."""
    states = [task["state"] for task in document["tasks"]]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    tasks = f"{counted(len(states), 'task')} ({', '.join(counts)})" if states else "no tasks"
    took = duration(document["seconds"])
    why = f": {clean(document['error'])}" if document["error"] else ""
    return f"clew: {document['id']} {document['state']} in {took}, {tasks}{why}"


def _tell(change: Change) -> None:
    node = change.node
    took = f" in {duration(change.seconds)}" if change.seconds is not None else ""
    execution = f" ({change.execution})" if change.execution else ""
    reason = node.error or change.why
    why = f": {clean(reason)}" if reason and node.state != "running" else ""
    state = "reused" if change.reused else node.state
    remark(f"  {state:<9}  {clean(node.path)}{took}{execution}{why}")


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="-p")
    return name, value

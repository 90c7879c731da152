"""`clew pipeline run`: run a pipeline, and tell on stderr how its tasks go."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.commands.pipeline.progress import Progress
from clew.cli.options import json_option
from clew.cli.output import clean, counted, duration, print_json, remark

if TYPE_CHECKING:
    from clew.pipelines.runs.runner import Change

_STATUS = {"succeeded": 0, "failed": 1, "canceled": 130}


jobs_option = click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), help="Tasks at once; default: the cores."
)


@click.command(
    "run",
    short_help="Run a pipeline.",
    epilog="Example: clew pipeline run train.yaml -p rate=0.1 -p epochs=3",
)
@click.argument("file", metavar="FILE.yaml|FILE.py", type=click.Path(path_type=Path))
@click.option(
    "-p", "parameters", metavar="NAME=VALUE", multiple=True, help="A parameter; repeatable."
)
@jobs_option
@click.option(
    "--on-host",
    is_flag=True,
    help="Run container components as processes of this machine, without their images.",
)
@click.option(
    "--platform",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Which secrets, configuration maps and volumes are here; default: pipeline-platform.toml.",
)
@click.option("--no-cache", is_flag=True, help="Run every task, also those done before.")
@json_option
def command(
    file: Path,
    parameters: tuple[str, ...],
    jobs: int | None,
    on_host: bool,
    platform: Path | None,
    no_cache: bool,
    as_json: bool,
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
        return carried_out(
            lambda **more: project.pipelines.run(
                file,
                given,
                jobs=jobs,
                reuse=not no_cache,
                on_host=on_host,
                platform=platform,
                **more,
            ),
            as_json,
        )


def carried_out(run: Callable[..., dict[str, Any]], as_json: bool) -> int:
    """Run it, tell how it goes, and answer with the status that tells how it ended."""
    with _loading(), Progress() as progress:

        def watch(change: Change) -> None:
            gc.enable()
            progress.changed(change)

        def say(text: str) -> None:
            progress.say(f"clew: {clean(text)}")

        document = run(say=say, watch=watch, brief=not as_json)
    if as_json:
        print_json(document)
    remark(summary(document))
    return _STATUS[document["state"]]


@contextmanager
def _loading() -> Iterator[None]:
    """What is loaded until the first task stays: nobody need look through it for what is over."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def summary(document: dict[str, Any]) -> str:
    """The one line at the end."""
    counts = document.get("counts")
    if counts is None:
        counts = Counter(task["state"] for task in document["tasks"])
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    tasks = f"{counted(sum(counts.values()), 'task')} ({each})" if counts else "no tasks"
    took = duration(document["seconds"])
    why = f": {clean(document['error'])}" if document["error"] else ""
    return f"clew: {document['id']} {document['state']} in {took}, {tasks}{why}"


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="-p")
    return name, value

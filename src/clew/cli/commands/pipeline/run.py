"""`clew pipeline run`: run a pipeline and print its progress on stderr."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew import __version__
from clew.cli.commands.pipeline.progress import Progress
from clew.cli.options import json_option
from clew.cli.output import escape, format_count, format_duration, print_json, print_message
from clew.cli.project_creation import open_or_create_project

if TYPE_CHECKING:
    from clew.documents.pipelines.runs import RunWithCounts, RunWithTasks
    from clew.pipelines.runner.run_types import Change, ClusterOptions

_STATUS = {"succeeded": 0, "failed": 1, "canceled": 130}


jobs_option = click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tasks at the same time; default: one per core, 100 on a cluster.",
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
    help="Maps secrets, ConfigMaps and volumes to this machine; default: pipeline-platform.toml.",
)
@click.option(
    "--on",
    type=click.Choice(["local", "kubernetes"]),
    default="local",
    show_default=True,
    help="Where tasks run: on this machine, or as Pods on the cluster of KUBECONFIG.",
)
@click.option(
    "--namespace",
    metavar="NAME",
    help="With --on kubernetes: the namespace of the Pods; default: that of the kubeconfig.",
)
@click.option(
    "--artifacts",
    metavar="s3://BUCKET/PREFIX",
    help="With --on kubernetes: where tasks leave their artifacts; default: CLEW_ARTIFACTS.",
)
@click.option("--no-cache", is_flag=True, help="Run every task; reuse no results.")
@json_option
def command(
    file: Path,
    parameters: tuple[str, ...],
    jobs: int | None,
    on_host: bool,
    platform: Path | None,
    on: str,
    namespace: str | None,
    artifacts: str | None,
    no_cache: bool,
    as_json: bool,
) -> int:
    """Run a compiled pipeline, or the one that a Python file defines, and record every task.

    Tasks are processes of this machine or, with --on kubernetes, Pods on a cluster; independent
    tasks run in parallel. The exit status is 1 when the run failed and 130 when it was canceled.
    Outside a project, one is created in the current directory.
    """
    cluster = None
    if on == "kubernetes":
        cluster = _choose_cluster(namespace, artifacts, on_host=on_host, platform=platform)
    elif namespace or artifacts:
        raise click.UsageError("--namespace and --artifacts are for --on kubernetes")
    given = dict(map(_parse_parameter, parameters))
    with open_or_create_project() as project:
        return run_with_progress(
            lambda **more: project.pipelines.run(
                file,
                given,
                jobs=jobs,
                reuse=not no_cache,
                on_host=on_host,
                platform=platform,
                cluster=cluster,
                **more,
            ),
            as_json,
        )


def _choose_cluster(
    namespace: str | None, artifacts: str | None, *, on_host: bool, platform: Path | None
) -> ClusterOptions:
    from clew import settings
    from clew.cli.kubernetes_extra import require_kubernetes
    from clew.pipelines.runs.cluster_options import choose_cluster

    if on_host or platform:
        raise click.UsageError("--on-host and --platform are for tasks on this machine")
    require_kubernetes()
    return choose_cluster(settings.load(), __version__, namespace=namespace, artifacts=artifacts)


def run_with_progress(run: Callable[..., RunWithTasks | RunWithCounts], as_json: bool) -> int:
    """Call `run` with progress on stderr, print the result, and return the exit status."""
    failed: list[str] = []
    with _without_gc(), Progress() as progress:

        def watch(change: Change) -> None:
            gc.enable()
            if change.node.state == "failed" and change.execution:
                failed.append(change.node.path)
            progress.changed(change)

        def say(text: str) -> None:
            progress.say(f"clew: {escape(text)}")

        document = run(say=say, watch=watch, brief=not as_json)
    if as_json:
        print_json(document.as_json())
    print_message(summarize(document))
    if failed:
        print_message(f"hint: clew pipeline logs {document.id}/{escape(failed[0])}")
    return _STATUS[document.state]


@contextmanager
def _without_gc() -> Iterator[None]:
    """Disable garbage collection until the first task starts: what is loaded before that stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def summarize(document: RunWithTasks | RunWithCounts) -> str:
    """The summary line at the end."""
    from clew.documents.pipelines.runs import RunWithTasks

    counts: Mapping[str, int]
    if isinstance(document, RunWithTasks):
        counts = Counter(task.state for task in document.tasks)
    else:
        counts = document.counts
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    tasks = f"{format_count(sum(counts.values()), 'task')} ({each})" if counts else "no tasks"
    took = format_duration(document.seconds)
    why = f": {escape(document.error)}" if document.error else ""
    id_ = document.id or document.uid
    return f"clew: {id_} {document.state} in {took}, {tasks}{why}"


def _parse_parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="-p")
    return name, value

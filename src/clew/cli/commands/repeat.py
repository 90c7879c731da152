"""`clew repeat`: run an execution again in isolation, and say what came out differently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clew.api.pipeline_artifacts import is_run, task_of
from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import clean, command_line, counted, duration, print_json, remark
from clew.cli.secrets import run_with_secrets, secret_option

DIFFERENT = 3


@click.command(
    "repeat",
    short_help=COMMANDS["repeat"],
    epilog="Example: clew repeat e2 --set 2=0.01",
)
@execution_argument
@click.option("--incremental", is_flag=True, help="Do not run again what is still valid.")
@click.option("--keep", metavar="DIR", type=click.Path(path_type=Path), help="Put outputs there.")
@click.option("--gpu", is_flag=True, help="Allow this machine's GPUs, if the execution used them.")
@click.option("--network", is_flag=True, help="Allow the network, if the execution used it.")
@secret_option
@click.option(
    "--set",
    "changes",
    metavar="N=V",
    multiple=True,
    help="Replace word N of the command; repeatable.",
)
@json_option
def command(
    execution: str,
    incremental: bool,
    keep: Path | None,
    gpu: bool,
    network: bool,
    secrets: tuple[str, ...],
    changes: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run an execution again with exactly the files, variables and working folder it had, seeing
    nothing else of this machine, and compare the results.

    With --set, N counts the words of the command from 0, the program. A value that names a file
    which the record does not have is brought in. A pipeline run (r2) is repeated task by task, and
    of an artifact (r2/train:model) the task that made it.

    A record made elsewhere gets no network and none of your variables unless you give them.
    Exits with 3 when the results differ.
    """
    parameters = dict(map(_parameter, changes))
    execution = task_of(execution)
    if is_run(execution):
        if parameters or incremental or keep or network or gpu:
            raise click.UsageError("a run is repeated as it was: name one of its tasks instead")
        return _run(execution, secrets, as_json)
    return run(
        execution,
        parameters,
        incremental=incremental,
        keep=keep,
        network=network,
        gpu=gpu,
        secrets=secrets,
        as_json=as_json,
    )


def _run(text: str, secrets: tuple[str, ...], as_json: bool) -> int:
    """A pipeline run, task by task."""
    import clew

    with clew.open() as project:
        document = run_with_secrets(
            project,
            secrets,
            lambda: project.pipelines.repeat(text, say=lambda said: remark(f"clew: {clean(said)}")),
        )
    if as_json:
        print_json(document)
    else:
        count = counted(len(document["tasks"]), "task")
        remark(f"clew: {document['of']} repeated: {document['verdict']} ({count})")
    return DIFFERENT if document["verdict"] == "different" else 0


def run(
    execution: str,
    parameters: dict[int, str],
    *,
    incremental: bool = False,
    keep: Path | None = None,
    network: bool = False,
    gpu: bool = False,
    secrets: tuple[str, ...] = (),
    as_json: bool = False,
) -> int:
    """Repeat, and print the verdict: on stderr, or as JSON in place of the command's output."""
    import clew

    with clew.open() as project:
        repeated = run_with_secrets(
            project,
            secrets,
            lambda: project.repeat(
                execution,
                parameters=parameters,
                network=network,
                gpu=gpu,
                incremental=incremental,
                keep=keep,
                quiet=as_json,
                say=lambda text: remark(f"clew: {clean(text)}"),
            ),
        )
    document = repeated.as_json()
    if as_json:
        print_json(document)
    else:
        report(document, incremental=incremental)
    return DIFFERENT if repeated.verdict == "different" else 0


def _parameter(text: str) -> tuple[int, str]:
    number, equals, value = text.partition("=")
    if not equals or not number.isdigit():
        raise click.BadParameter(f"{text!r} is not N=VALUE", param_hint="--set")
    return int(number), value


def report(document: dict[str, Any], *, incremental: bool) -> None:
    """The verdict in words; of an incremental run also what ran, and what did not have to."""
    execution, verdict = document["execution"], document["verdict"]
    how = {"repetition": "repeats", "modification": "modifies"}[execution["kind"]]
    outputs = counted(execution["outputs"], "output")
    took = duration(execution["seconds"])
    remark(f"clew: {execution['id']} {how} {document['of']}: {verdict} ({outputs}, {took})")
    for one in document["differences"]:
        known = f" ({clean(one['rule'])})" if one.get("rule") else ""
        remark(f"  {one['kind']:<10}  {clean(one['path'])}{known}")
        for line in one.get("lines", ()):
            remark(f"      {clean(line)}")
    divergence = document["divergence"]
    if divergence is not None:
        words = command_line(divergence["command"])
        remark(f"first to diverge: {divergence['process']}  {words}")
        for cause in divergence["causes"]:
            remark(f"  {cause['confidence']}: {cause['cause']}: {clean(cause['detail'])}")
    if incremental:
        for one in document["ran"]:
            remark(f"  ran     {command_line(one['command'])}: {clean(one['why'])}")
        for one in document["reused"]:
            remark(f"  reused  {command_line(one['command'])}, from {one['from']}")

"""`clew repeat`: run an execution again in isolation and compare the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.api.pipeline_artifacts import is_run, task_of
from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import (
    escape,
    format_command,
    format_count,
    format_duration,
    print_json,
    print_message,
)
from clew.cli.secrets import run_with_secrets, secret_option

if TYPE_CHECKING:
    from clew.documents.executions.repeats import Repeated

DIFFERENT = 3


@click.command(
    "repeat",
    short_help=COMMANDS["repeat"],
    epilog="Examples: clew repeat e2 --set C=0.01 | clew repeat e2 --set 2=0.01",
)
@execution_argument
@click.option("--incremental", is_flag=True, help="Reuse results that are still valid.")
@click.option(
    "--keep", metavar="DIR", type=click.Path(path_type=Path), help="Write the outputs there."
)
@click.option("--gpu", is_flag=True, help="Allow this machine's GPUs, if the execution used them.")
@click.option("--network", is_flag=True, help="Give the command this machine's network.")
@secret_option
@click.option(
    "--set",
    "changes",
    metavar="NAME=V",
    multiple=True,
    help="Set a parameter, by its name or as word N of the command; repeatable.",
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
    """Run an execution again with exactly the files, variables and working directory it had,
    isolated from the rest of this machine, and compare the results.

    --set C=0.01 replaces the value of --C, -C or C= in the command; --set 2=0.01 replaces word 2,
    counted from 0, which is the program. If the value is a file that the record does not have, it
    is added. A pipeline run (r2) is repeated task by task; for an
    artifact (r2/train:model), the task that made it is repeated.

    An execution that was recorded elsewhere gets no network and none of your variables unless you
    allow them. The exit status is 3 when the results differ.
    """
    parameters = [_parse_parameter(text) for text in changes]
    execution = task_of(execution)
    if is_run(execution):
        if parameters or incremental or keep or network or gpu:
            raise click.UsageError(
                "these options do not apply to a pipeline run: name one of its tasks"
            )
        return _repeat_pipeline_run(execution, secrets, as_json)
    return repeat_execution(
        execution,
        parameters,
        incremental=incremental,
        keep=keep,
        network=network,
        gpu=gpu,
        secrets=secrets,
        as_json=as_json,
    )


def _repeat_pipeline_run(text: str, secrets: tuple[str, ...], as_json: bool) -> int:
    """Repeat a pipeline run, task by task."""
    import clew

    with clew.open() as project:
        document = run_with_secrets(
            project,
            secrets,
            lambda: project.pipelines.repeat(
                text, say=lambda message: print_message(f"clew: {escape(message)}")
            ),
        )
    if as_json:
        print_json(document.as_json())
    else:
        count = format_count(len(document.tasks), "task")
        print_message(f"clew: {document.of} repeated: {document.verdict} ({count})")
    return DIFFERENT if document.verdict == "different" else 0


def repeat_execution(
    execution: str,
    parameters: Sequence[tuple[str, str]],
    *,
    incremental: bool = False,
    keep: Path | None = None,
    network: bool = False,
    gpu: bool = False,
    secrets: tuple[str, ...] = (),
    as_json: bool = False,
) -> int:
    """Repeat an execution and print the result on stderr; with --json, on stdout."""
    import clew
    from clew.errors import NotAllowed
    from clew.prov.graph import LATEST
    from clew.replay.repeat.parameters import find_words

    with clew.open() as project:
        found = project.execution(execution)  # once: another may be the latest after a prompt
        if execution == LATEST and found.made_elsewhere and (network or gpu or secrets):
            raise NotAllowed(
                f"the latest execution is {found.id}, which was made elsewhere",
                hint=f"to allow it that, name it: clew repeat {found.id}",
            )
        repeated = run_with_secrets(
            project,
            secrets,
            lambda: project.repeat(
                found.uid,
                parameters=find_words(found.command, parameters),
                network=network,
                gpu=gpu,
                incremental=incremental,
                keep=keep,
                quiet=as_json,
                say=lambda text: print_message(f"clew: {escape(text)}"),
            ),
        )
    if as_json:
        print_json(repeated.as_json())
    else:
        print_report(repeated, incremental=incremental)
    return DIFFERENT if repeated.verdict == "different" else 0


def _parse_parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip("-"):
        raise click.BadParameter(f"{text!r} is not NAME=VALUE or N=VALUE", param_hint="--set")
    return name, value


def print_report(document: Repeated, *, incremental: bool) -> None:
    """Print the verdict and the differences; if `incremental`, also what ran and was reused."""
    execution, verdict = document.execution, str(document.verdict)
    how = {"repetition": "repeats", "modification": "modifies"}[execution.kind]
    outputs = format_count(execution.output_count, "output")
    took = format_duration(execution.seconds)
    differences = document.differences
    status = next((one for one in differences if one.kind == "status"), None)
    if status is not None:
        failed = "failed" if status.b else "different"
        verdict = f"{failed}: exit status {status.a} → {status.b}"
    print_message(f"clew: {execution.id} {how} {document.of}: {verdict} ({outputs}, {took})")
    for difference in differences:
        if difference is status:
            continue
        rule = f" ({escape(difference.rule)})" if difference.rule else ""
        print_message(f"  {difference.kind:<10}  {escape(difference.path)}{rule}")
        for line in difference.lines or ():
            print_message(f"      {escape(line)}")
    divergence = document.divergence
    if divergence is not None:
        words = format_command(divergence.command)
        print_message(f"first to diverge: {divergence.process}  {words}")
        for cause in divergence.causes:
            print_message(f"  {cause.confidence}: {cause.cause}: {escape(cause.detail)}")
        if any(cause.cause == "gpu" for cause in divergence.causes):
            print_message(f"hint: clew repeat {document.of} --gpu lets it use the GPU")
        confirmed = {c.cause for c in divergence.causes if c.confidence == "confirmed"}
        if pins := sorted(confirmed & {"clock", "random"}):
            print_message(
                f"hint: record it with clew exec --pin {','.join(pins)}: repeats are identical then"
            )
    if incremental:
        for program in document.ran:
            command_line = format_command(program.command)
            print_message(f"  ran     {command_line}: {escape(program.why)}")
        for reused in document.reused:
            command_line = format_command(reused.command)
            print_message(f"  reused  {command_line}, from {reused.source}")

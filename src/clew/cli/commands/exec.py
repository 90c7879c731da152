"""`clew exec`: run a command and record it. stdout belongs to the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from clew.cli.completion.candidates import complete_files
from clew.cli.main import COMMANDS
from clew.cli.output import escape, format_count, format_duration, format_size, print_message
from clew.cli.progress import progress
from clew.cli.project_creation import open_or_create_project

if TYPE_CHECKING:
    from clew.api.executions import Execution, Outcome


@click.command(
    "exec",
    short_help=COMMANDS["exec"],
    context_settings={"allow_interspersed_args": False},
    epilog="Example: clew exec --name baseline -- python train.py --epochs 3",
)
@click.option("--name", metavar="NAME", help="A name for the execution, usable like its id.")
@click.option("--no-content", is_flag=True, help="Store digests only, no file content.")
@click.option(
    "--exclude",
    metavar="GLOB",
    multiple=True,
    help="Store only the digests of matching files; repeatable.",
)
@click.option(
    "--pin", metavar="WHAT", default="", help="Fix what a repeat must reproduce: clock,random."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stderr.")
@click.argument(
    "words",
    metavar="-- COMMAND [ARGS]...",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=complete_files,
)
def command(
    name: str | None,
    no_content: bool,
    exclude: tuple[str, ...],
    pin: str,
    as_json: bool,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND and record what it reads, writes and starts.

    COMMAND keeps its input, output, terminal, signals and exit status. A summary is printed on
    stderr at the end. Outside a project, one is created in the current directory, except in / and
    in the home directory.
    """
    if not words:
        raise click.UsageError("The command to run is missing", click.get_current_context())
    with open_or_create_project(here=True) as project, progress("sending") as draw:
        outcome = project.run(
            words,
            name=name,
            content=not no_content,
            exclude=exclude,
            pin=pin,
            progress=draw,
        )
    execution = outcome.execution
    if outcome.warning is not None:
        print_message(f"clew: warning: {escape(outcome.warning.message)}")
        if outcome.warning.hint:
            print_message(f"hint: {escape(outcome.warning.hint)}")
    if as_json:
        print_message(json.dumps(execution.as_json() | _extra_fields(outcome), ensure_ascii=False))
    elif outcome.joined:
        print_message(f"clew: recorded as part of {outcome.joined}")
    elif execution.ended is None:  # its end is not in the graph
        print_message(_summarize_unfolded(execution, outcome.status))
    else:
        print_message(summarize(execution) + _describe_delivery(outcome))
    return outcome.status


def _extra_fields(outcome: Outcome) -> dict[str, Any]:
    """Fields that the document has only where they apply."""
    fields: dict[str, Any] = {}
    if outcome.warning:
        fields["warning"] = outcome.warning.as_json()["error"]
    if outcome.sent:
        fields["sent"] = {"server": outcome.server, "id": outcome.sent}
    if outcome.waiting:
        fields["waiting"] = outcome.waiting
    return fields


def _summarize_unfolded(execution: Execution, status: int) -> str:
    """The summary of an execution whose end is not in the graph."""
    name = execution.id or execution.uid[:8]
    if execution.state == "broken":
        return f"clew: {name} ended with status {status}; its record is incomplete"
    return (
        f"clew: {name} ended with status {status};"
        " its record is stored, and the next command adds it to the graph"
    )


def _describe_delivery(outcome: Outcome) -> str:
    if outcome.waiting:
        return f", not sent yet: {escape(outcome.waiting)}"
    return f", sent as {outcome.sent}" if outcome.sent else ""


def summarize(execution: Execution) -> str:
    """The summary line: id, status, time, processes, inputs, outputs, bytes."""
    name = f" ({escape(execution.name)})" if execution.name else ""
    state: str = execution.state
    if execution.signal:
        state = f"killed by signal {execution.signal}"
    elif state == "failed":
        state = f"failed with status {execution.status}"
    parts = [
        f"clew: {execution.id}{name} {state} in {format_duration(execution.seconds)}",
        format_count(execution.process_count, "process", "processes"),
        format_count(execution.input_count, "input"),
        format_count(execution.output_count, "output"),
        f"{format_size(execution.bytes or 0)} ({format_size(execution.new_bytes or 0)} new)",
    ]
    return ", ".join(parts)

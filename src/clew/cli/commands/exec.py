"""`clew exec`: run a command and record it. stdout belongs to the command alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, counted, duration, remark, size
from clew.cli.progress import progress

if TYPE_CHECKING:
    from clew.api import Outcome


@click.command(
    "exec",
    short_help=COMMANDS["exec"],
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    epilog="Example: clew exec --name baseline -- python train.py --epochs 3",
)
@click.option("--name", metavar="NAME", help="A name that may stand for the execution's id.")
@click.option("--no-content", is_flag=True, help="Keep digests only, no file's bytes.")
@click.option(
    "--exclude", metavar="GLOB", multiple=True, help="Keep only the digests of these; repeatable."
)
@click.option(
    "--pin", metavar="WHAT", default="", help="What a repeat shall find the same: clock,random."
)
@json_option
@click.argument("words", metavar="-- COMMAND [ARGS]...", nargs=-1, type=click.UNPROCESSED)
def command(
    name: str | None,
    no_content: bool,
    exclude: tuple[str, ...],
    pin: str,
    as_json: bool,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND as if alone, and record what it reads, writes and starts.

    The command keeps its input, output, terminal, signals and exit status. One line on stderr
    sums up at the end. Outside a project, one is made in the current folder.
    """
    if not words:
        raise click.UsageError("Missing the command to run", click.get_current_context())
    import clew
    from clew.errors import NoProject

    try:
        project = clew.open(here=True)
    except NoProject:
        project = clew.init(".")
        remark(f"clew: made a project in {project.root}")
    with project, progress("sending") as draw:
        outcome = project.run(
            words,
            name=name,
            content=not no_content,
            exclude=exclude,
            pin=pin.split(","),
            progress=draw,
        )
    execution = outcome.execution.as_json()
    if outcome.warning is not None:
        remark(f"clew: warning: {clean(outcome.warning.message)}")
        if outcome.warning.hint:
            remark(f"hint: {clean(outcome.warning.hint)}")
    if as_json:
        remark(json.dumps(execution | _more(outcome), ensure_ascii=False))
    elif outcome.joined:
        remark(f"clew: recorded as part of {outcome.joined}")
    elif execution["ended"] is None:
        remark(_unfolded(execution, outcome.status))
    else:
        remark(summary(execution) + _sent(outcome))
    return outcome.status


def _more(outcome: Outcome) -> dict[str, Any]:
    """What stands in the document only where there is something to say."""
    found: dict[str, Any] = {}
    if outcome.warning:
        found["warning"] = outcome.warning.as_json()["error"]
    if outcome.sent:
        found["sent"] = {"server": outcome.server, "id": outcome.sent}
    if outcome.waiting:
        found["waiting"] = outcome.waiting
    return found


def _unfolded(execution: dict[str, Any], status: int) -> str:
    """The line for an execution whose end is not in the graph."""
    name = execution["id"] or execution["uid"][:8]
    if execution["state"] == "broken":
        return f"clew: {name} ended with status {status}; not recorded whole"
    return (
        f"clew: {name} ended with status {status};"
        " its record is kept here, and the next command folds it"
    )


def _sent(outcome: Outcome) -> str:
    if outcome.waiting:
        return f", not sent yet: {clean(outcome.waiting)}"
    return f", sent as {outcome.sent}" if outcome.sent else ""


def summary(execution: dict[str, Any]) -> str:
    """The one line: id, status, time, processes, inputs, outputs, bytes."""
    name = f" ({clean(execution['name'])})" if execution["name"] else ""
    state = execution["state"]
    if execution["signal"]:
        state = f"killed by signal {execution['signal']}"
    elif state == "failed":
        state = f"failed with status {execution['status']}"
    parts = [
        f"clew: {execution['id']}{name} {state} in {duration(execution['seconds'])}",
        counted(execution["processes"], "process", "processes"),
        counted(execution["inputs"], "input"),
        counted(execution["outputs"], "output"),
        f"{size(execution['bytes'] or 0)} ({size(execution['new_bytes'] or 0)} new)",
    ]
    return ", ".join(parts)

"""`clew list`: every execution on a line."""

from __future__ import annotations

from typing import Any

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import command_line, duration, print_json, print_table, remark, when


@click.command("list", short_help=COMMANDS["list"], epilog="Example: clew list --json | jq '.[-1]'")
@json_option
def command(as_json: bool) -> None:
    """List the executions, oldest first: id, name, state, when, how long, command."""
    import clew

    with clew.open() as project:
        executions = [execution.as_json() for execution in project.executions()]
    if as_json:
        print_json(executions)
    elif not executions:
        remark("nothing is recorded yet; begin with: clew exec -- COMMAND")
    else:
        headings = ("id", "name", "state", "started", "took", "command")
        print_table(headings, map(row, executions))


def row(execution: dict[str, Any]) -> tuple[str, ...]:
    return (
        execution["id"],
        execution["name"] or "",
        state(execution),
        when(execution["started"]),
        duration(execution["seconds"]),
        command_line(execution["command"]),
    )


def state(execution: dict[str, Any]) -> str:
    """The state, and for a failure how: `failed 2`, `failed signal 9`."""
    if execution["state"] != "failed":
        return str(execution["state"])
    if execution["signal"]:
        return f"failed signal {execution['signal']}"
    return f"failed {execution['status']}"

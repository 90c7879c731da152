"""`clew pull`: fetch executions from a remote."""

from __future__ import annotations

import click

from clew.cli.commands.list import format_state
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import (
    escape,
    format_command,
    format_size,
    format_time,
    print_json,
    print_message,
    print_table,
)
from clew.cli.progress import progress
from clew.errors import UsageError


@click.command(
    "pull",
    short_help=COMMANDS["pull"],
    epilog="Examples: clew pull s3://bucket/paper --list | clew pull s3://bucket/paper e2",
)
@click.argument("url", metavar="URL")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--list", "list_them", is_flag=True, help="List the executions there; fetch nothing.")
@json_option
def command(url: str, ids: tuple[str, ...], list_them: bool, as_json: bool) -> None:
    """Fetch executions from the remote URL: the given ones, or all that are not here yet.

    An ID is a uid or a prefix of one, a name, or the id the execution had where it was pushed.
    It gets a new id here. Everything is verified, and only missing content is transferred.
    """
    if list_them:
        if ids:
            raise UsageError("--list takes no ids", hint=f"clew pull {url} --list")
        _print_shared(url, as_json)
        return
    import clew

    with clew.open() as project, progress("fetching") as draw:
        transfer = project.pull(url, ids or None, progress=draw)
    if as_json:
        print_json(transfer.as_json())
        return
    for text in transfer.remarks:
        print_message(escape(text))
    for execution in transfer.executions:
        print_message(f"{execution.id}  {format_command(execution.command)}")
    count = f"{len(transfer.executions)} execution" + ("s" if len(transfer.executions) != 1 else "")
    print_message(
        f"pulled {count} ({format_size(transfer.bytes)} fetched)"
        if count[0] != "0"
        else "nothing to pull"
    )


def _print_shared(url: str, as_json: bool) -> None:
    import clew

    with clew.open() as project:
        executions = project.shared(url, warn=print_message)
    if as_json:
        print_json(executions)
    elif not executions:
        print_message(f"there are no executions at {url}; start with: clew push {url}")
    else:
        print_table(
            ("uid", "id", "name", "state", "started", "here", "command"),
            (
                (
                    execution["uid"][:8],
                    execution["id"],
                    execution["name"] or "",
                    format_state(execution),
                    format_time(execution["started"]),
                    execution["here"] or "",
                    format_command(execution["command"]),
                )
                for execution in executions
            ),
        )

"""`clew pull`: executions from others."""

from __future__ import annotations

import click

from clew.cli.commands.list import state
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, command_line, print_json, print_table, remark, size, when
from clew.cli.progress import progress
from clew.errors import UsageError


@click.command(
    "pull",
    short_help=COMMANDS["pull"],
    epilog="Examples: clew pull s3://bucket/paper --list | clew pull s3://bucket/paper e2",
)
@click.argument("url", metavar="URL")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--list", "list_them", is_flag=True, help="List what is there; fetch nothing.")
@json_option
def command(url: str, ids: tuple[str, ...], list_them: bool, as_json: bool) -> None:
    """Fetch executions from URL, where they were pushed: all that are not here, or those named.

    An ID is a uid or its beginning, a name, or the number that the pusher has it by. Here an
    execution gets a number of its own. All that arrives is verified; only content that is
    missing here travels.
    """
    if list_them:
        if ids:
            raise UsageError("--list lists all that is there", hint=f"clew pull {url} --list")
        _list(url, as_json)
        return
    import clew

    with clew.open() as project, progress("fetching") as draw:
        done = project.pull(url, ids or None, progress=draw)
    if as_json:
        print_json(done.as_json())
        return
    for text in done.remarks:
        remark(clean(text))
    for execution in done.executions:
        remark(f"{execution.id}  {command_line(execution.command)}")
    count = f"{len(done.executions)} execution" + ("s" if len(done.executions) != 1 else "")
    remark(f"pulled {count} ({size(done.bytes)} fetched)" if count[0] != "0" else "all is here")


def _list(url: str, as_json: bool) -> None:
    import clew

    with clew.open() as project:
        found = project.shared(url, warn=remark)
    if as_json:
        print_json(found)
    elif not found:
        remark(f"nothing is at {url}; begin with: clew push {url}")
    else:
        print_table(
            ("uid", "id", "name", "state", "started", "here", "command"),
            (
                (
                    execution["uid"][:8],
                    execution["id"],
                    execution["name"] or "",
                    state(execution),
                    when(execution["started"]),
                    execution["here"] or "",
                    command_line(execution["command"]),
                )
                for execution in found
            ),
        )

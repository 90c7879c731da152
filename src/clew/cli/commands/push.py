"""`clew push`: send executions to a remote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clew.cli.commands.list import format_program
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import escape, format_count, format_size, print_json, print_message
from clew.cli.progress import progress
from clew.cli.remote_argument import complete_remotes, resolve_remote

if TYPE_CHECKING:
    from clew.documents.executions.push_pull import Transfer


@click.command(
    "push",
    short_help=COMMANDS["push"],
    epilog="Examples: clew push /mnt/shared/paper | clew push s3://bucket/paper e2",
)
@click.argument("words", metavar="[REMOTE] [ID]...", nargs=-1, shell_complete=complete_remotes)
@click.option("--no-sign", is_flag=True, help="Do not sign, even if a key is set.")
@json_option
def command(words: tuple[str, ...], no_sign: bool, as_json: bool) -> None:
    """Send executions to REMOTE: the given ones, or all that are not there yet.

    REMOTE is a directory, s3://bucket/prefix, or a name given by clew remote add; without it, the
    default remote is used.

    Only missing content is transferred; an interrupted push continues where it stopped.
    Executions recorded here are signed if a key is set (clew key create).
    The AWS_* environment variables configure the access to S3.
    """
    url, ids = resolve_remote(words)
    import clew

    with clew.open() as project, progress("sending") as draw:
        transfer = project.push(url, ids or None, sign=not no_sign, progress=draw)
    print_transfer(transfer, "push", "sent", as_json=as_json)


def print_transfer(transfer: Transfer, verb: str, moved: str, *, as_json: bool) -> None:
    """Print what was pushed or pulled; `moved`: what happened to the bytes."""
    if as_json:
        print_json(transfer.as_json())
        return
    for text in transfer.remarks:
        print_message(escape(text))
    for execution in transfer.executions:
        print_message(f"{execution.id}  {format_program(execution)}")
    if not transfer.executions:
        print_message(f"nothing to {verb}")
        return
    count = format_count(len(transfer.executions), "execution")
    print_message(f"{verb}ed {count} ({format_size(transfer.bytes)} {moved})")

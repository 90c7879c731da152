"""`clew pull`: fetch executions from a remote."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.commands.list import format_state
from clew.cli.commands.push import print_transfer
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import (
    format_command,
    format_time,
    print_json,
    print_message,
    print_table,
)
from clew.cli.progress import progress
from clew.cli.project_creation import open_or_create_project, print_created
from clew.cli.remote_argument import complete_remotes, resolve_remote
from clew.errors import NoProject, UsageError
from clew.remotes import FIRST, load

if TYPE_CHECKING:
    from clew.documents.executions.push_pull import Transfer


@click.command(
    "pull",
    short_help=COMMANDS["pull"],
    epilog="Examples: clew pull s3://bucket/paper --list | clew pull s3://bucket/paper e2",
)
@click.argument("words", metavar="[REMOTE] [ID]...", nargs=-1, shell_complete=complete_remotes)
@click.option("--list", "list_them", is_flag=True, help="List the executions there; fetch nothing.")
@json_option
def command(words: tuple[str, ...], list_them: bool, as_json: bool) -> None:
    """Fetch executions from REMOTE: the given ones, or all that are not here yet.

    REMOTE is a directory, s3://bucket/prefix, or a name given by clew remote add; without it, the
    default remote is used. REMOTE can also be a file that clew bundle create wrote. Where there is
    no project, one is created, with REMOTE as its default unless it is a file.

    An ID is a uid or a prefix of one, a name, or the id the execution had where it was pushed.
    It gets a new id here. Everything is verified, and only missing content is transferred.
    """
    url, ids = resolve_remote(words)
    if list_them:
        if ids:
            raise UsageError("--list takes no ids", hint=f"clew pull {url} --list")
        _print_shared(url, as_json)
        return
    print_transfer(_pull(url, ids), "pull", "fetched", as_json=as_json)


def _pull(url: str, ids: tuple[str, ...]) -> Transfer:
    """Pull into the project here, or into a new one, which stays only if that succeeds."""
    from clew import project_directory, settings

    chosen = settings.load()
    is_new = chosen.server is None and project_directory.find_here(chosen) is None
    with open_or_create_project(quiet=True) as project:
        try:
            with progress("fetching") as draw:
                transfer = project.pull(url, ids or None, progress=draw)
        except BaseException:
            if is_new:
                project.close()
                shutil.rmtree(project.root / project_directory.NAME)
            raise
        if is_new:
            print_created(project)
            if not Path(url).is_file():  # to a bundle, nothing can be pushed
                remotes = load(project.root / project_directory.NAME)
                remotes.add(FIRST, url)
                remotes.save()
    return transfer


def _print_shared(url: str, as_json: bool) -> None:
    import clew

    with contextlib.ExitStack() as stack:
        try:
            project = stack.enter_context(clew.open())
        except NoProject:
            empty = stack.enter_context(tempfile.TemporaryDirectory())
            project = stack.enter_context(clew.init(empty))
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
                    format_state(execution["state"], execution["status"], execution["signal"]),
                    format_time(execution["started"]),
                    execution["here"] or "",
                    format_command(execution["command"]),
                )
                for execution in executions
            ),
        )

"""What commands share: the options all of them take, and what a shell may complete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def yes_option(command: Command) -> Command:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def dry_run_option(command: Command) -> Command:
    return click.option("--dry-run", is_flag=True, help="Say what would happen; do nothing.")(
        command
    )


def complete_executions(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids and names of executions; nothing at all where there is no project."""
    import clew
    from clew.cli.output import command_line
    from clew.errors import ClewError

    try:
        with clew.open() as project:
            known = project.executions()
    except ClewError:
        return []
    return [
        CompletionItem(word, help=command_line(execution.command)[:60])
        for execution in reversed(known)
        for word in (execution.id, execution.name)
        if word and word.startswith(incomplete)
    ]


def complete_targets(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Executions, or files: the shell itself knows those."""
    found = complete_executions(ctx, param, incomplete)
    return found or [CompletionItem(incomplete, type="file")]


def execution_argument(command: Command) -> Command:
    return click.argument("execution", metavar="ID", shell_complete=complete_executions)(command)


def version_argument(command: Command) -> Command:
    return click.argument("version", metavar="VERSION", shell_complete=complete_targets)(command)


def target_argument(command: Command) -> Command:
    return click.argument("target", metavar="TARGET", shell_complete=complete_targets)(command)

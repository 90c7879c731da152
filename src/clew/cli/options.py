"""Options and arguments that commands share, and their shell completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def yes_option(command: Command) -> Command:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def dry_run_option(command: Command) -> Command:
    return click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")(
        command
    )


def complete_executions(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete ids and names of executions; nothing outside a project."""
    import clew
    from clew.cli.output import format_command
    from clew.errors import ClewError

    try:
        with clew.open() as project:
            executions = project.executions()
    except ClewError:
        return []
    return [
        CompletionItem(word, help=format_command(execution.command)[:60])
        for execution in reversed(executions)
        for word in (execution.id, execution.name)
        if word and word.startswith(incomplete)
    ]


def complete_targets(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete executions, or let the shell complete files."""
    executions = complete_executions(ctx, param, incomplete)
    return executions or [CompletionItem(incomplete, type="file")]


def execution_argument(command: Command) -> Command:
    return click.argument("execution", metavar="ID", shell_complete=complete_executions)(command)


def version_argument(command: Command) -> Command:
    return click.argument("version", metavar="VERSION", shell_complete=complete_targets)(command)


def target_argument(command: Command) -> Command:
    return click.argument("target", metavar="TARGET", shell_complete=complete_targets)(command)

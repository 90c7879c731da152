"""Options and arguments that commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from clew.cli.completion.candidates import complete_executions, complete_targets

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def yes_option(command: Command) -> Command:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def dry_run_option(command: Command) -> Command:
    return click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")(
        command
    )


def execution_argument(command: Command) -> Command:
    return click.argument("execution", metavar="ID", shell_complete=complete_executions)(command)


def version_argument(command: Command) -> Command:
    return click.argument("version", metavar="VERSION", shell_complete=complete_targets)(command)


def target_argument(command: Command) -> Command:
    return click.argument("target", metavar="TARGET", shell_complete=complete_targets)(command)

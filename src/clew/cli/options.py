"""Options and arguments that commands share."""

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from clew.cli.completion.candidates import complete_executions, complete_targets
from clew.cli.output import FIELDS

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """`--json` prints the whole document, `--json=FIELDS` some of its fields."""
    return click.option(
        "--json",
        "as_json",
        metavar="[FIELDS]",
        callback=_choose_fields,
        shell_complete=_complete_argument,
        help="Print one JSON document, or only these fields: --json=id,state.",
    )(command)


def _choose_fields(ctx: click.Context, _: click.Parameter, value: str | None) -> bool:
    ctx.meta[FIELDS] = tuple(filter(None, (value or "").split(",")))
    return value is not None


def _complete_argument(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`--json` needs no value: complete the command's first argument after it."""
    arguments = (param for param in ctx.command.params if isinstance(param, click.Argument))
    argument = next(arguments, None)
    return argument.shell_complete(ctx, incomplete) if argument else []


def pager_option(command: Command) -> Command:
    """Show the output of the command with a pager, if stdout is a terminal."""

    @functools.wraps(command)
    def run_paged(*arguments: Any, no_pager: bool, **options: Any) -> Any:
        if no_pager or not sys.stdout.isatty():
            return command(*arguments, **options)
        from clew.cli.pager import page_output

        with page_output():
            return command(*arguments, **options)

    option = click.option("--no-pager", is_flag=True, help="Print without a pager.")
    return cast(Command, option(run_paged))


def web_option(command: Command) -> Command:
    return click.option("--web", is_flag=True, help="Open its lineage in the browser.")(command)


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

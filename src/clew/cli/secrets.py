"""The option `--secret NAME[=FILE]` or `--secret PATH[=FILE]`: secrets for a repeat."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.cli.output import escape
from clew.errors import SecretsNeeded, UsageError
from clew.replay.repeat.secret_values import is_path, read_file

if TYPE_CHECKING:
    from clew.api.project import Project

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")


def secret_option(command: Command) -> Command:
    return click.option(
        "--secret",
        "secrets",
        metavar="NAME[=FILE]",
        multiple=True,
        help="Provide a secret: the value of the variable NAME, or the content of FILE. An "
        "absolute path as NAME provides a credential file. Repeatable.",
    )(command)


def run_with_secrets(
    project: Project, options: Iterable[str], action: Callable[[], Result]
) -> Result:
    """Call `action` with the secrets of the options; on a terminal, prompt for missing ones."""
    project.give_secrets(dict(map(_read_secret, options)))
    try:
        return action()
    except SecretsNeeded as error:
        if not (error.names and sys.stdin.isatty()):
            raise
        click.echo(f"clew: {escape(error.message)}", err=True)
        project.give_secrets({name: _prompt_secret(name) for name in error.names})
        return action()


def _read_secret(option: str) -> tuple[str, str]:
    name, equals, file = option.partition("=")
    if is_path(name):
        return name, _read_credential_file(name, file or name)
    if equals:
        try:
            return name, Path(file).read_text(errors="surrogateescape").rstrip("\n")
        except OSError as error:
            raise UsageError(
                f"the secret {name} cannot be read from {file}: {error.strerror}",
                hint=f"name a readable file: --secret {name}=FILE",
            ) from error
    if name in os.environ:
        return name, os.environ[name]
    if sys.stdin.isatty():
        return name, _prompt_secret(name)
    raise UsageError(
        f"the secret {name} is not set",
        hint=f"set it first (export {name}=…), or read it from a file: --secret {name}=FILE",
    )


def _read_credential_file(path: str, file: str) -> str:
    """The content of `file`, which the repeat gets as the credential file `path`."""
    content = read_file(file)
    if content is None:
        raise UsageError(
            f"{file} cannot be read, so it cannot be provided as {path}",
            hint=f"name a readable file: --secret {path}=FILE",
        )
    return content


def _prompt_secret(name: str) -> str:
    if is_path(name):
        question = f"file to give as {escape(name)} (Ctrl-C to cancel)"
        return _read_credential_file(name, str(click.prompt(question, err=True)))
    return str(
        click.prompt(f"value of {escape(name)} (Ctrl-C to cancel)", hide_input=True, err=True)
    )

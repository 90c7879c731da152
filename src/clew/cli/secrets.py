"""`--secret NAME[=FILE]`, `--secret PATH[=FILE]`: what a user gives to a repeat."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.cli.output import clean
from clew.errors import SecretsNeeded, UsageError
from clew.replay.repeat.secret_values import is_path, read_file

if TYPE_CHECKING:
    from clew.api import Project

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")


def secret_option(command: Command) -> Command:
    return click.option(
        "--secret",
        "secrets",
        metavar="NAME[=FILE]",
        multiple=True,
        help="Give it this secret: the variable NAME, or what FILE holds; if NAME is an absolute "
        "path, the credential file there; repeatable.",
    )(command)


def run_with_secrets(
    project: Project, words: Iterable[str], action: Callable[[], Result]
) -> Result:
    """Do `action` with the secrets that `words` name; on a terminal, ask for those it lacks."""
    project.give_secrets(dict(map(_read, words)))
    try:
        return action()
    except SecretsNeeded as error:
        if not (error.names and sys.stdin.isatty()):
            raise
        click.echo(f"clew: {clean(error.message)}", err=True)
        project.give_secrets({name: _ask(name) for name in error.names})
        return action()


def _read(word: str) -> tuple[str, str]:
    name, equals, file = word.partition("=")
    if is_path(name):
        return name, _content(name, file or name)
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
        return name, _ask(name)
    raise UsageError(
        f"the secret {name} is not set",
        hint=f"set it first (export {name}=…), or read it from a file: --secret {name}=FILE",
    )


def _content(path: str, file: str) -> str:
    """The content of `file`, to be given as the credential file `path`."""
    content = read_file(file)
    if content is None:
        raise UsageError(
            f"{file} cannot be read, to be given as {path}",
            hint=f"name a readable file: --secret {path}=FILE",
        )
    return content


def _ask(name: str) -> str:
    if is_path(name):
        question = f"file to give as {clean(name)} (Ctrl-C gives nothing)"
        return _content(name, str(click.prompt(question, err=True)))
    return str(
        click.prompt(f"value of {clean(name)} (Ctrl-C gives nothing)", hide_input=True, err=True)
    )

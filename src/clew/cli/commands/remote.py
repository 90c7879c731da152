"""`clew remote`: name the places that executions are pushed to and pulled from."""

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message, print_table
from clew.remotes import Remotes, load


@click.group(
    "remote", short_help=COMMANDS["remote"], epilog="Example: clew remote add lab s3://bucket/paper"
)
def command() -> None:
    """Name remotes, so that push and pull need no address."""


@command.command("add", epilog="Example: clew remote add lab s3://bucket/paper")
@click.argument("name")
@click.argument("url", metavar="URL")
@click.option("--default", "make_default", is_flag=True, help="Use it when none is named.")
@json_option
def add(name: str, url: str, make_default: bool, as_json: bool) -> None:
    """Add the remote URL, a directory or s3://bucket/prefix, as NAME. The first one is the
    default."""
    remotes = _load()
    remotes.add(name, url, make_default=make_default)
    remotes.save()
    _print(remotes, as_json)


@command.command("list", epilog="Example: clew remote list")
@json_option
def list_(as_json: bool) -> None:
    """List the remotes; the default one is marked."""
    _print(_load(), as_json)


@command.command("remove", epilog="Example: clew remote remove lab")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a remote. What is stored there stays."""
    remotes = _load()
    remotes.remove(name)
    remotes.save()
    _print(remotes, as_json)


def _load() -> Remotes:
    from clew import project_directory, settings

    return load(project_directory.find(Path.cwd(), settings.load()).path)


def _print(remotes: Remotes, as_json: bool) -> None:
    rows = [
        {"name": name, "url": url, "default": name == remotes.default}
        for name, url in remotes.urls.items()
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        print_message("no remotes; add one with: clew remote add NAME URL")
    else:
        marks = ("*" if row["default"] else "" for row in rows)
        cells = [
            (str(row["name"]), mark, str(row["url"])) for row, mark in zip(rows, marks, strict=True)
        ]
        print_table(("name", "default", "url"), cells)

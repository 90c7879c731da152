"""`clew init`: make a project."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, remark


@click.command(
    "init", short_help=COMMANDS["init"], epilog="Example: clew init && clew exec -- make"
)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False))
@json_option
def command(folder: str, as_json: bool) -> None:
    """Make a project in DIR, or in the current folder.

    Commands find it by walking up from where they are called, as git does. A project that is
    there already stays as it is.
    """
    import clew

    there = (Path(folder) / ".clew").exists()
    with clew.init(folder) as project:
        if as_json:
            print_json({"project": str(project.root), "uid": project.uid, "created": not there})
        elif there:
            remark(f"{project.root} is a project already")
        else:
            remark(f"made a project in {project.root}")

"""`clew init`: create a project."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "init", short_help=COMMANDS["init"], epilog="Example: clew init && clew exec -- make"
)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(file_okay=False))
@json_option
def command(directory: str, as_json: bool) -> None:
    """Create a project in DIR, or in the current directory.

    Other commands look for it in the current directory and its parents, as git does. An existing
    project is not changed.
    """
    import clew

    existed = (Path(directory) / ".clew").exists()
    with clew.init(directory) as project:
        if as_json:
            print_json({"project": str(project.root), "uid": project.uid, "created": not existed})
        elif existed:
            print_message(f"{project.root} is already a project")
        else:
            print_message(f"created a project in {project.root}")

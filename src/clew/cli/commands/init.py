"""`clew init`: create a project."""

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "init", short_help=COMMANDS["init"], epilog="Example: clew init && clew exec -- make"
)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(file_okay=False))
@click.option("--trust", is_flag=True, help="Count an existing project's executions as your own.")
@json_option
def command(directory: str, trust: bool, as_json: bool) -> None:
    """Create a project in DIR, or in the current directory.

    Other commands look for it in the current directory and its parents, as git does. An existing
    project is not changed. If you did not make it on this machine (it came with a repository, for
    example), its executions count as made elsewhere until you --trust it.
    """
    import clew
    from clew.project_directory import is_accepted

    existed = (Path(directory) / ".clew").exists()
    with clew.init(directory, trust=trust) as project:
        accepted = is_accepted(project.directory, project.settings)
        if as_json:
            print_json({"project": str(project.root), "uid": project.uid, "created": not existed})
        elif existed:
            print_message(f"{project.root} is already a project")
            if not accepted:
                print_message(
                    "clew: you did not make it on this machine: its executions count as made"
                    " elsewhere; to count them as your own: clew init --trust"
                )
        else:
            print_message(f"created a project in {project.root}")

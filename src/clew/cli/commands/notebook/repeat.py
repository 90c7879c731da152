"""`clew notebook repeat`: run the cells of a notebook again, or reuse their results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import json_option
from clew.cli.output import escape, print_json, print_message, print_table
from clew.cli.project_creation import print_created

if TYPE_CHECKING:
    from clew.api.project import Project


@click.command(
    "repeat",
    short_help="Run the cells of a notebook in a new kernel.",
    epilog="Example: clew notebook repeat report.ipynb --incremental -o new.ipynb",
)
@click.argument("file", type=click.Path())
@click.option("--incremental", is_flag=True, help="Reuse cells of which nothing changed.")
@click.option(
    "--set", "parameters", multiple=True, metavar="NAME=VALUE", help="Set a variable first."
)
@click.option("-o", "--output", type=click.Path(), help="Write the notebook with its new outputs.")
@click.option("--python", metavar="FILE", help="The Python that the notebook runs in.")
@json_option
def command(
    file: str,
    incremental: bool,
    parameters: tuple[str, ...],
    output: str | None,
    python: str | None,
    as_json: bool,
) -> None:
    """Run all cells of a notebook in a new kernel and record each of them.

    With --incremental, a cell is reused if its code, the variables it can read, and all that it
    found in files are the same as when it last ran; its outputs and variables come from the store.
    A cell that cannot be reused runs, and the reason is shown.
    """
    from clew.notebooks.notebook_repeat import parse_parameters

    given = parse_parameters(parameters)
    with _open_project(Path(file)) as project:
        repeated = project.notebook(
            file, incremental=incremental, parameters=given, output=output, python=python
        )
    if as_json:
        print_json(repeated.as_json())
    else:
        print_table(
            ("cell", "state", "seconds", "why"),
            (
                (str(cell.index), cell.state, f"{cell.seconds:.2f}", escape(cell.why))
                for cell in repeated.cells
            ),
        )
        print_message(f"{file}: {escape(repeated.error or repeated.verdict)}")
    sys.exit(1 if repeated.error else 0)


def _open_project(file: Path) -> Project:
    """The project that contains the notebook; created beside it if there is none."""
    import clew
    from clew.errors import NoProject

    folder = file.resolve().parent
    try:
        return clew.open(folder)
    except NoProject:
        if not file.exists():
            raise
        project = clew.init(folder)
        print_created(project)
        return project

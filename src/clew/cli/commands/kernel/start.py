"""`clew kernel start`: what Jupyter starts in place of ipykernel."""

import json
import os
import sys
from pathlib import Path

import click

from clew.cli.output import print_message


@click.command(
    "start",
    short_help="Start a kernel (Jupyter does).",
    epilog="Example: clew kernel start -- -f connection.json",
)
@click.option("--python", metavar="FILE", help="The Python that the notebook runs in.")
@click.option("--incremental", is_flag=True, help="Reuse cells of which nothing changed.")
@click.option("--json", "as_json", is_flag=True, help="Print {status} on stderr when it has ended.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    python: str | None, incremental: bool, as_json: bool, arguments: tuple[str, ...]
) -> None:
    """Start a recorded kernel with ipykernel's ARGUMENTS, and wait for its end."""
    from clew import project_directory
    from clew import settings as environment
    from clew.errors import NoProject
    from clew.notebooks import kernel_spec

    chosen = python or kernel_spec.find_python()
    settings = environment.load()
    try:
        directory = project_directory.find(Path.cwd(), settings)
    except NoProject:
        print_message("clew: no project contains this notebook: it is not recorded (clew init)")
        os.execv(chosen, [chosen, "-m", "ipykernel_launcher", *arguments])  # noqa: S606
    from clew.notebooks.kernel_process import run_kernel

    status = run_kernel(directory, settings, arguments, python=chosen, incremental=incremental)
    if as_json:
        print_message(json.dumps({"status": status}))  # stdout is the kernel's
    sys.exit(status)

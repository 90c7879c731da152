"""`clew checkout`: write the input files of an execution to a directory, to edit them."""

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import (
    escape,
    format_count,
    format_size,
    print_json,
    print_message,
    shorten_path,
)


@click.command(
    "checkout",
    short_help=COMMANDS["checkout"],
    epilog="Example: clew checkout e2 work && cd work && edit train.py && clew commit",
)
@execution_argument
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@json_option
def command(execution: str, folder: Path | None, as_json: bool) -> None:
    """Write the data, configuration and source files that an execution read to DIR.

    DIR must be new, empty, or a checkout without changes, which is then switched to this
    execution. The default is a directory here with the name or id you gave. Files from outside
    the execution's working directory are written below _outside/.
    """
    import clew

    with clew.open() as project:
        checkout = project.checkout(execution, folder)
    if as_json:
        print_json(checkout.as_json())
        return
    for file in checkout.missing:
        print_message(f"clew: missing, because its content was not stored: {escape(file.path)}")
    total = format_size(checkout.bytes)
    files = format_count(checkout.files, "file")
    directory = escape(shorten_path(checkout.folder))
    print_message(f"checked out {checkout.execution} to {directory}: {files}, {total}")

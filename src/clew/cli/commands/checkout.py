"""`clew checkout`: get the files of an execution, to change them."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import clean, counted, nearest, print_json, remark, size


@click.command(
    "checkout",
    short_help=COMMANDS["checkout"],
    epilog="Example: clew checkout e2 work && cd work && edit train.py && clew commit",
)
@execution_argument
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@json_option
def command(execution: str, folder: Path | None, as_json: bool) -> None:
    """Lay out in DIR the data, configuration and source files that an execution found.

    DIR is new or empty, or a checkout without changes, which is then switched to this
    execution. Without DIR it is a folder here, called as you called the execution. What lay
    outside the execution's working folder stands below _outside/.
    """
    import clew

    with clew.open() as project:
        made = project.checkout(execution, folder)
    if as_json:
        print_json(made.as_json())
        return
    for path in made.missing:
        remark(f"clew: not there, its bytes were not kept: {clean(path)}")
    total = size(made.as_json()["bytes"])
    files = counted(made.files, "file")
    remark(f"checked out {made.execution} to {clean(nearest(made.folder))}: {files}, {total}")

"""`clew export`: an execution for other programs."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import print_bytes, print_json, remark

FORMATS = ("prov-json", "prov-n", "ro-crate")


@click.command(
    "export",
    short_help=COMMANDS["export"],
    epilog="Example: clew export e2 --format ro-crate -o crate/",
)
@execution_argument
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="prov-json",
    show_default=True,
    help="What to write.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIR|-",
    type=click.Path(),
    default="-",
    help="Where to; - is stdout. An RO-Crate needs a folder that does not exist yet.",
)
@json_option
def command(execution: str, format_: str, output: str, as_json: bool) -> None:
    """Write execution ID as W3C PROV (prov-json, prov-n) or as an RO-Crate.

    An RO-Crate is a folder with the description and the files themselves.
    """
    import clew

    if as_json and output == "-":
        raise click.UsageError("--json says where the export went: give -o a file or a folder")
    with clew.open() as project:
        written = project.export(execution, format=format_, to=None if output == "-" else output)
    if isinstance(written, bytes):
        print_bytes(written)
    elif as_json:
        print_json({"execution": execution, "format": format_, "path": str(written)})
    else:
        remark(f"wrote {written}")

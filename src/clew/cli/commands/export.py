"""`clew export`: an execution for other programs."""

from __future__ import annotations

import sys

import click

from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import clean, print_json, remark

FORMATS = ("prov-json", "prov-n", "ro-crate", "oci", "dockerfile")


@click.command(
    "export",
    short_help=COMMANDS["export"],
    epilog="Examples: clew export e2 --format ro-crate -o crate | "
    "clew export e2 --format oci -o e2.tar",
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
    help="Where to; - is stdout. An RO-Crate and a Dockerfile need a folder that does not exist"
    " yet.",
)
@json_option
def command(execution: str, format_: str, output: str, as_json: bool) -> None:
    """Write execution ID as W3C PROV (prov-json, prov-n), as an RO-Crate, or to run elsewhere.

    An RO-Crate is a folder with the description and the files themselves. oci is an image of what
    the execution needs, as one archive that container programs import; dockerfile a folder with a
    Dockerfile that installs its packages, and its own files.
    """
    import clew

    stdout = sys.stdout.buffer if output == "-" else None
    if as_json and stdout:
        raise click.UsageError("--json says where the export went: give -o a file or a folder")
    if format_ == "oci" and stdout and sys.stdout.isatty():
        raise click.UsageError("an image is not for a terminal: give -o a file")
    told: list[str] = []

    def say(text: str) -> None:
        told.append(text)
        if not as_json:
            remark(f"clew: {clean(text)}")

    with clew.open() as project:
        project.export(execution, format=format_, to=stdout or output, say=say)
    if stdout:
        stdout.flush()
    elif as_json:
        document = {"execution": execution, "format": format_, "path": output}
        print_json({**document, "warnings": told})
    else:
        remark(f"wrote {output}")

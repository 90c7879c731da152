"""`clew export`: write an execution in a standard format."""

import sys

import click

from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import escape, print_json, print_message

FORMATS = ("prov-json", "prov-n", "ro-crate", "oci", "dockerfile", "runner")


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
    help="The format.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIR|-",
    type=click.Path(),
    default="-",
    help="Where to write; - is stdout. ro-crate and dockerfile need a new directory.",
)
@json_option
def command(execution: str, format_: str, output: str, as_json: bool) -> None:
    """Write execution ID as W3C PROV (prov-json, prov-n), an RO-Crate, an image, a Dockerfile or
    a self-contained runner.

    ro-crate writes a directory with the description and the files. oci writes a container image
    with everything the execution needs, as one archive. dockerfile writes a directory with the
    files of the execution and a Dockerfile that installs its packages. runner writes one executable
    file that runs the execution where Clew is not installed; it needs Python and bubblewrap.
    """
    import clew

    stdout = sys.stdout.buffer if output == "-" else None
    if as_json and stdout:
        raise click.UsageError(
            "--json prints where the export is: give a file or a directory with -o"
        )
    if format_ in ("oci", "runner") and stdout and sys.stdout.isatty():
        raise click.UsageError("this cannot be printed on a terminal: give a file with -o")
    warnings: list[str] = []

    def say(text: str) -> None:
        warnings.append(text)
        if not as_json:
            print_message(f"clew: {escape(text)}")

    with clew.open() as project:
        project.export(execution, format=format_, to=stdout or output, say=say)
    if stdout:
        stdout.flush()
    elif as_json:
        document = {"execution": execution, "format": format_, "path": output}
        print_json({**document, "warnings": warnings})
    else:
        print_message(f"wrote {output}")

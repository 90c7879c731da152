"""`clew source`: record the URL a file was downloaded from."""

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message, shorten_path


@click.command(
    "source",
    short_help=COMMANDS["source"],
    epilog="Example: clew source data/raw.csv https://example.org/raw.csv",
)
@click.argument("path", metavar="PATH", type=click.Path())
@click.argument("url", metavar="URL")
@json_option
def command(path: str, url: str, as_json: bool) -> None:
    """Record that the file at PATH, as it is now, was downloaded from URL.

    `clew exec` detects downloads by curl, wget, requests and huggingface; this command is for
    other files.
    """
    import clew

    with clew.open() as project:
        project.source(path, url)
    if as_json:
        print_json({"path": path, "source": url})
    else:
        print_message(f"{shorten_path(path)} comes from {url}")

"""`clew source`: where a file was taken from."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import nearest, print_json, remark


@click.command(
    "source",
    short_help=COMMANDS["source"],
    epilog="Example: clew source data/raw.csv https://example.org/raw.csv",
)
@click.argument("path", metavar="PATH", type=click.Path())
@click.argument("url", metavar="URL")
@json_option
def command(path: str, url: str, as_json: bool) -> None:
    """Say that the file at PATH, as it is now, was taken from URL.

    Downloads by curl, wget, requests and huggingface under `clew exec` are found by
    themselves; this is for the others.
    """
    import clew

    with clew.open() as project:
        project.source(path, url)
    if as_json:
        print_json({"path": path, "source": url})
    else:
        remark(f"{nearest(path)} comes from {url}")

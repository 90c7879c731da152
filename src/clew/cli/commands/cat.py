"""`clew cat`: the bytes of a version on stdout."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, version_argument
from clew.cli.output import print_bytes, print_json


@click.command(
    "cat", short_help=COMMANDS["cat"], epilog="Example: clew cat e1:data.csv@input | head"
)
@version_argument
@json_option
def command(version: str, as_json: bool) -> None:
    """Print the bytes of VERSION.

    e2:PATH is what execution e2 left there, e2:PATH@input what it found, e2:PATH@N the N-th it
    met; a digest (blake3:…, 8 digits suffice) names bytes wherever they were. With --json the
    bytes come base64-encoded in a document.
    """
    import clew

    with clew.open() as project:
        if not as_json:
            for chunk in project.chunks(version):
                print_bytes(chunk)
            return
        content = project.read(version)
    from base64 import b64encode

    print_json(
        {"version": version, "size": len(content), "content_b64": b64encode(content).decode()}
    )

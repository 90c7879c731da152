"""`clew viewer`: a folder in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, remark, say


@click.command(
    "viewer",
    short_help=COMMANDS["viewer"],
    epilog="Example: clew viewer /data --prefix /pvcviewer/me/data/",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--prefix", default="/", show_default=True, help="What the addresses of its pages begin with."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8110,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0: any that is free.",
)
@click.option(
    "--known-as",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name that browsers reach it by through a proxy on this machine.",
)
@click.option(
    "--access-digest",
    metavar="DIGEST",
    help="Answer only requests whose header X-Clew-Access has this SHA-256: the operator sets it.",
)
@json_option
def command(
    folder: Path,
    prefix: str,
    host: str,
    port: int,
    names: tuple[str, ...],
    access_digest: str | None,
    as_json: bool,
) -> None:
    """Show a folder in a browser: look, fetch, send, rename, edit and delete files.

    Nothing outside the folder can be reached. Whoever can reach the viewer can change the folder:
    it asks nobody who they are. So it listens to this machine alone unless told otherwise; `clew
    server --targets` stands before it and does ask.
    """
    from clew.viewer.listener import serve

    def started(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            say(address)
        remark(f"clew: showing {folder}, to whoever asks; end with Ctrl-C")

    serve(
        folder,
        prefix=prefix,
        host=host,
        port=port,
        names=names,
        access_digest=access_digest,
        started=started,
    )

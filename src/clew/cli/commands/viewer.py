"""`clew viewer`: browse and edit a directory in a web browser."""

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_line, print_message


@click.command(
    "viewer",
    short_help=COMMANDS["viewer"],
    epilog="Example: clew viewer /data --prefix /pvcviewer/me/data/",
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--prefix", default="/", show_default=True, help="The path prefix of its pages.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8110,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0: any free port.",
)
@click.option(
    "--known-as",
    "names",
    multiple=True,
    metavar="NAME",
    help="A host name that a proxy on this machine serves it under.",
)
@click.option(
    "--access-digest",
    metavar="DIGEST",
    help="Accept only requests whose X-Clew-Access header has this SHA-256; set by the operator.",
)
@json_option
def command(
    directory: Path,
    prefix: str,
    host: str,
    port: int,
    names: tuple[str, ...],
    access_digest: str | None,
    as_json: bool,
) -> None:
    """Browse a directory in a web browser: view, download, upload, rename, edit and delete files.

    Nothing outside the directory is accessible. The viewer has no authentication: everyone who can
    connect to it can change the directory. By default it listens on this machine only; `clew
    server --targets` proxies it with authentication.
    """
    from clew.viewer.listener import serve

    def started(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            print_line(address)
        print_message(f"clew: serving {directory} without authentication; stop with Ctrl-C")

    serve(
        directory,
        prefix=prefix,
        host=host,
        port=port,
        names=names,
        access_digest=access_digest,
        started=started,
    )

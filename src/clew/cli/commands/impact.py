"""`clew impact`: show what was made from a file."""

import click

from clew.cli.commands import trace
from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option, target_argument, web_option


@click.command(
    "impact",
    short_help=COMMANDS["impact"],
    epilog="Examples: clew impact data/raw.csv | clew impact image@sha256:…",
)
@target_argument
@trace.depth_option
@trace.all_option
@web_option
@trace.as_of_option
@json_option
@pager_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    depth: int | None,
    everything: bool,
    web: bool,
    as_of: str | None,
    as_json: bool,
) -> None:
    """Show everything that was made from TARGET, across executions: what to make again if it is
    wrong, was retracted or must be deleted. An image (image@sha256:…) or a package
    (pkg:deb/debian/openssl) stands for all that ran with it. The same as clew trace --down."""
    ctx.invoke(
        trace.command,
        target=target,
        down=True,
        depth=depth,
        everything=everything,
        web=web,
        as_of=as_of,
        as_json=as_json,
        no_pager=True,  # this command has one
    )

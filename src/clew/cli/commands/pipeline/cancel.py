"""`clew pipeline cancel`: stop a run."""

from __future__ import annotations

import click

from clew.cli.commands.pipeline.run import summary
from clew.cli.options import json_option
from clew.cli.output import print_json, remark


@click.command("cancel", short_help="Stop a run.", epilog="Example: clew pipeline cancel r2")
@click.argument("run", metavar="RUN")
@json_option
def command(run: str, as_json: bool) -> None:
    """Stop a run that goes on in another terminal, with all its tasks, and wait for its end."""
    import clew

    with clew.open() as project:
        document = project.pipelines.cancel(run)
    if as_json:
        print_json(document)
    remark(summary(document))

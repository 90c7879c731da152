"""`clew pipeline cancel`: cancel a run."""

import click

from clew.cli.commands.pipeline.run import summarize
from clew.cli.completion.candidates import complete_runs
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command("cancel", short_help="Cancel a run.", epilog="Example: clew pipeline cancel r2")
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@json_option
def command(run: str, as_json: bool) -> None:
    """Cancel a run that another process executes, with all its tasks, and wait for its end."""
    import clew

    with clew.open() as project:
        document = project.pipelines.cancel(run)
    if as_json:
        print_json(document.as_json())
    print_message(summarize(document))

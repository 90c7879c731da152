"""`clew pipeline list`: list the runs."""

import click

from clew.cli.options import json_option, pager_option
from clew.cli.output import format_duration, format_time, print_json, print_message, print_table


@click.command("list", short_help="List the runs.", epilog="Example: clew pipeline list --json")
@json_option
@pager_option
def command(as_json: bool) -> None:
    """List the runs, newest first: id, pipeline, state, when, how long."""
    import clew

    with clew.open() as project:
        runs = project.pipelines.list()[::-1]
    if as_json:
        print_json([run.as_json() for run in runs])
    elif not runs:
        print_message("no pipeline has been run yet; start with: clew pipeline run FILE.yaml")
    else:
        print_table(
            ("id", "pipeline", "state", "started", "took"),
            (
                (run.id or run.uid, run.name or "", run.state,
                 format_time(run.started), format_duration(run.seconds))
                for run in runs
            ),
        )  # fmt: skip

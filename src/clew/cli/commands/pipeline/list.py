"""`clew pipeline list`: every run on a line."""

from __future__ import annotations

import click

from clew.cli.options import json_option
from clew.cli.output import duration, print_json, print_table, remark, when


@click.command("list", short_help="List the runs.", epilog="Example: clew pipeline list --json")
@json_option
def command(as_json: bool) -> None:
    """List the runs, oldest first: id, pipeline, state, when, how long."""
    import clew

    with clew.open() as project:
        found = project.pipelines.list()
    if as_json:
        print_json(found)
    elif not found:
        remark("no pipeline has been run yet; begin with: clew pipeline run FILE.yaml")
    else:
        print_table(
            ("id", "pipeline", "state", "started", "took"),
            (
                (run["id"], run["name"] or "", run["state"], when(run["started"]),
                 duration(run["seconds"]))
                for run in found
            ),
        )  # fmt: skip

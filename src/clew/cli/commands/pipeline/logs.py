"""`clew pipeline logs`: what a task printed."""

from __future__ import annotations

import click

from clew.cli.options import json_option
from clew.cli.output import print_bytes, print_json


@click.command(
    "logs", short_help="Print what a task printed.", epilog="Example: clew pipeline logs r1/train"
)
@click.argument("task", metavar="RUN/TASK")
@click.option("--follow", "-f", is_flag=True, help="Go on until the task ends.")
@json_option
def command(task: str, follow: bool, as_json: bool) -> None:
    """Print what a task printed in its last attempt, its errors included; so far, if it runs."""
    import clew

    with clew.open() as project:
        found = project.pipelines.logs(task, follow=follow)
        if as_json:
            text = b"".join(found).decode(errors="replace")
            print_json({"task": project.pipelines.task(task)["id"], "log": text})
            return
        for piece in found:
            print_bytes(piece)

"""`clew pipeline why`: why a task ran, or did not have to."""

from __future__ import annotations

import json

import click

from clew.cli.options import json_option
from clew.cli.output import clean, print_json, print_table, say


@click.command(
    "why", short_help="Tell why a task ran, or not.", epilog="Example: clew pipeline why r2/train"
)
@click.argument("task", metavar="RUN/TASK")
@json_option
def command(task: str, as_json: bool) -> None:
    """Tell why a task ran or was reused, what it was compared by, and every fact it relied on.

    A fact is a file it read, a name it looked for in vain, a folder it listed: if one of them
    changes, the task runs again.
    """
    import clew

    with clew.open() as project:
        document = project.pipelines.why(task)
    if as_json:
        print_json(document)
        return
    why = f": {clean(document['why'])}" if document["why"] else ""
    say(f"{document['id']}  {document['state']}{why}")
    for name, value in document["parts"].items():
        say(f"  {name:<10}  {clean(json.dumps(value, ensure_ascii=False))}")
    print_table(
        ("fact", "path", "answer"),
        ((one["kind"], clean(one["path"]), one["answer"]) for one in document["facts"]),
    )

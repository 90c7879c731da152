"""`clew pipeline why`: explain why a task ran or was reused."""

import json

import click

from clew.cli.completion.candidates import complete_tasks
from clew.cli.options import json_option, pager_option
from clew.cli.output import (
    escape,
    format_count,
    print_json,
    print_line,
    print_message,
    print_table,
)


@click.command(
    "why",
    short_help="Explain why a task ran or was reused.",
    epilog="Example: clew pipeline why r2/train",
)
@click.argument("task", metavar="RUN/TASK", shell_complete=complete_tasks)
@click.option("--facts", is_flag=True, help="List everything that the task depends on.")
@json_option
@pager_option
def command(task: str, facts: bool, as_json: bool) -> None:
    """Explain why a task ran or was reused.

    With --facts, the parts of its cache key and the facts it depends on are listed: files that it
    read, paths that did not exist, directories that it listed. If one of them changes, the task
    runs again.
    """
    import clew

    with clew.open() as project:
        document = project.pipelines.why(task)
    if as_json:
        print_json(document.as_json())
        return
    why = f": {escape(document.why)}" if document.why else ""
    print_line(f"{document.id}  {document.state}{why}")
    if document.pod:
        digest = f", image {document.image_digest}" if document.image_digest else ""
        print_line(f"  it ran as the Pod {document.pod} on {document.node or 'no node'}{digest}")
    if document.placement:
        print_line(f"  it was placed {escape(document.placement)}")
    if not facts:
        count = format_count(len(document.facts), "fact")
        print_message(f"it depends on {count} (--facts)")
        return
    for name, value in document.parts.items():
        print_line(f"  {name:<10}  {escape(json.dumps(value, ensure_ascii=False))}")
    print_table(
        ("fact", "path", "answer"),
        ((fact.kind, escape(fact.path), fact.answer) for fact in document.facts),
    )

"""`clew note`: add notes to an execution, a process or a file."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, target_argument
from clew.cli.output import escape, print_json, print_line


@click.command(
    "note", short_help=COMMANDS["note"], epilog="Example: clew note e2 verdict=good reviewer=Ann"
)
@target_argument
@click.argument("pairs", metavar="KEY=VALUE...", nargs=-1)
@json_option
def command(target: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """Add notes to TARGET: an execution, a process, or a version of a file.

    Nothing is overwritten: a key may have several values. Without KEY=VALUE, the existing notes
    are shown.
    """
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise click.UsageError(f"{pair!r} is not KEY=VALUE", click.get_current_context())
        values[key] = value
    import clew

    with clew.open() as project:
        notes = project.note(target, **values)
    if as_json:
        print_json({"target": target, "notes": [note.as_json() for note in notes]})
        return
    for note in notes:
        print_line(f"{escape(note.key)}={escape(note.value)}")

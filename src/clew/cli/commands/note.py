"""`clew note`: add notes to an execution, a process or a file."""

import re

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, target_argument
from clew.cli.output import escape, print_json, print_line

TEXT = "note"
"""The key of a note that is text."""
_PAIR = re.compile(r"([^\s=]+)=(.*)", re.DOTALL)


@click.command(
    "note",
    short_help=COMMANDS["note"],
    epilog='Examples: clew note latest "the best so far" | clew note e2 verdict=good reviewer=Ann',
)
@target_argument
@click.argument("words", metavar="[TEXT | KEY=VALUE...]", nargs=-1)
@json_option
def command(target: str, words: tuple[str, ...], as_json: bool) -> None:
    """Add a note to TARGET: an execution, a process, or a version of a file.

    A note is TEXT, in quotes, or has a KEY. Nothing is overwritten: a key may have several values.
    Without a note, the existing ones are shown. clew list finds executions by their notes.
    """
    values = _parse(words)
    import clew

    with clew.open() as project:
        notes = project.note(target, **values)
    if as_json:
        print_json({"target": target, "notes": [note.as_json() for note in notes]})
        return
    for note in notes:
        print_line(format_note(note.key, note.value))


def _parse(words: tuple[str, ...]) -> dict[str, str]:
    pairs = [_PAIR.fullmatch(word) for word in words]
    values = {pair[1]: pair[2] for pair in pairs if pair}
    if len(words) == 1 and not values and words[0].strip() and not words[0].startswith("="):
        return {TEXT: words[0]}
    if None in pairs:
        raise click.UsageError(
            f"{words[pairs.index(None)]!r} is not KEY=VALUE; put a text in quotes",
            click.get_current_context(),
        )
    return values


def format_note(key: str, value: str) -> str:
    """A note on one line: its text, or `key=value`."""
    return escape(value) if key == TEXT else f"{escape(key)}={escape(value)}"

"""`clew given`: `repeat --set` in the syntax of Sciunit."""

import click

from clew.cli.commands.repeat import repeat_execution
from clew.cli.main import COMMANDS
from clew.cli.options import json_option


@click.command(
    "given",
    short_help=COMMANDS["given"],
    context_settings={"ignore_unknown_options": True},
    epilog="Example: clew given 0.01 repeat e2 %2",
)
@json_option
@click.argument("words", metavar="VALUE... repeat ID %N...", nargs=-1, type=click.UNPROCESSED)
def command(as_json: bool, words: tuple[str, ...]) -> int:
    """Repeat an execution with other parameters: the first VALUE replaces word N of the command,
    where %N is the first place given, and so on.

    Words count from 0, which is the program. A VALUE may be a file.
    """
    values, execution, places = _parse_words(words)
    return repeat_execution(execution, list(zip(places, values, strict=True)), as_json=as_json)


def _parse_words(words: tuple[str, ...]) -> tuple[list[str], str, list[str]]:
    ctx = click.get_current_context()
    if "repeat" not in words:
        raise click.UsageError("The word `repeat` is missing", ctx)
    at = len(words) - 1 - words[::-1].index("repeat")  # the last: a value may be "repeat" too
    values, rest = list(words[:at]), words[at + 1 :]
    places = [word[1:] for word in rest[1:] if word[:1] == "%" and word[1:].isdigit()]
    if not rest or len(places) != len(rest) - 1:
        raise click.UsageError("After `repeat`, give an execution and one %N for each value", ctx)
    if len(places) != len(values):
        raise click.UsageError(f"{len(values)} values, but {len(places)} places (%N)", ctx)
    return values, rest[0], places

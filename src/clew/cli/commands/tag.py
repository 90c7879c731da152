"""`clew tag`: add tags to an execution, or remove them."""

import click

from clew.cli.completion.candidates import complete_tags
from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import escape, print_json, print_line


@click.command(
    "tag",
    short_help=COMMANDS["tag"],
    epilog="Examples: clew tag latest baseline | clew tag e2 --remove baseline | "
    "clew list tag:baseline",
)
@execution_argument
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_tags)
@click.option("--remove", is_flag=True, help="Remove these tags.")
@json_option
def command(execution: str, names: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Add tags to the execution or pipeline run ID, and print those that it has then.

    clew list shows tags, and finds executions by them: clew list tag:NAME.
    """
    if remove and not names:
        raise click.UsageError("--remove needs the tags to remove", click.get_current_context())
    import clew

    with clew.open() as project:
        tags = project.tag(execution, *(() if remove else names), remove=names if remove else ())
    if as_json:
        print_json({"execution": execution, "tags": tags})
        return
    for tag in tags:
        print_line(escape(tag))

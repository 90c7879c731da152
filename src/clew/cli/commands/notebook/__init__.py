"""`clew notebook`: notebooks, cell by cell."""

import click

from clew.cli.commands.notebook.repeat import command as repeat
from clew.cli.main import COMMANDS


@click.group(
    "notebook",
    short_help=COMMANDS["notebook"],
    epilog="Example: clew notebook repeat report.ipynb --incremental",
)
def command() -> None:
    """Run notebooks again, cell by cell."""


for _command in (repeat,):
    command.add_command(_command)

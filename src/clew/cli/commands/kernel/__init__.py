"""`clew kernel`: the kernel with which Jupyter's notebooks are recorded."""

import click

from clew.cli.commands.kernel.install import command as install
from clew.cli.commands.kernel.start import command as start
from clew.cli.main import COMMANDS


@click.group("kernel", short_help=COMMANDS["kernel"], epilog="Example: clew kernel install --user")
def command() -> None:
    """Install the kernel that records notebooks cell by cell, or start it."""


for _command in (install, start):
    command.add_command(_command)

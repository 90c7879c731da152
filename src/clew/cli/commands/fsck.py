"""`clew fsck`: verify the stored content and the signatures."""

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import escape, print_json, print_line, print_message
from clew.errors import Damaged


@click.command("fsck", short_help=COMMANDS["fsck"], epilog="Example: clew fsck --json")
@json_option
def command(as_json: bool) -> int:
    """Hash all stored content again, and check that everything the record refers to is stored.

    Signed executions are compared with what was signed.

    The exit status is 3 when damage was found, else 0.
    """
    import clew

    with clew.open() as project:
        check = project.fsck()
    if as_json:
        print_json(check.as_json())
    else:
        for problem in check.problems:
            print_line(f"{escape(problem.what)}\t{escape(problem.where)}")
        result = f"{len(check.problems)} problems" if check.problems else "no problem"
        print_message(f"checked {check.checked} contents: {result}")
    return 0 if check.ok else Damaged.exit_status

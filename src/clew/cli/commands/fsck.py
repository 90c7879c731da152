"""`clew fsck`: prove that every stored byte is what it says."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, print_json, remark, say
from clew.errors import Damaged


@click.command("fsck", short_help=COMMANDS["fsck"], epilog="Example: clew fsck --json")
@json_option
def command(as_json: bool) -> int:
    """Hash everything in the store again, and check that all the record names is there.

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
            say(f"{clean(problem.what)}\t{clean(problem.where)}")
        found = f"{len(check.problems)} problems" if check.problems else "no problem"
        remark(f"checked {check.checked} contents: {found}")
    return 0 if check.ok else Damaged.exit_status

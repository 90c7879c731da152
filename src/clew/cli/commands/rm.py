"""`clew rm`: forget executions."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import complete_executions, dry_run_option, json_option, yes_option
from clew.cli.output import command_line, confirm, print_json, remark


@click.command("rm", short_help=COMMANDS["rm"], epilog="Example: clew rm e3 e4 && clew gc")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_executions)
@dry_run_option
@yes_option
@json_option
def command(ids: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> None:
    """Forget executions: their processes, files and notes leave the record.

    Files on disk stay as they are. The stored bytes are freed by `clew gc`, as far as no other
    execution has them. An id is never given again.
    """
    import clew

    with clew.open() as project:
        doomed = project.remove(ids, dry_run=True)
        if not as_json:
            for execution in doomed:
                remark(f"{execution.id}  {command_line(execution.command)}")
        if not dry_run:
            count = f"{len(doomed)} execution" + ("s" if len(doomed) != 1 else "")
            confirm(
                f"this forgets {count} for good",
                "Forget?",
                yes=yes,
                hint="add --yes, or --dry-run to see only",
            )
            project.remove(ids)
    if as_json:
        print_json({"removed": [execution.id for execution in doomed], "dry_run": dry_run})
    elif not dry_run:
        remark("forgotten; clew gc frees the space")

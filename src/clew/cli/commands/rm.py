"""`clew rm`: remove executions from the record."""

import click

from clew.cli.completion.candidates import complete_executions
from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, yes_option
from clew.cli.output import confirm, format_command, print_json, print_message


@click.command("rm", short_help=COMMANDS["rm"], epilog="Example: clew rm e3 e4 && clew gc")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_executions)
@dry_run_option
@yes_option
@json_option
def command(ids: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove executions from the record, with their processes, files and notes.

    Files on disk are not changed. `clew gc` then deletes stored content that no other execution
    uses. Ids are never used again.
    """
    import clew

    with clew.open() as project:
        removed = project.remove(ids, dry_run=True)
        if not as_json:
            for execution in removed:
                print_message(f"{execution.id}  {format_command(execution.command)}")
        if not dry_run:
            count = f"{len(removed)} execution" + ("s" if len(removed) != 1 else "")
            confirm(
                f"this removes {count} permanently",
                "Remove?",
                yes=yes,
                hint="add --yes to remove, or --dry-run to only show it",
            )
            project.remove([execution.uid for execution in removed])  # `latest` may be another now
    if as_json:
        print_json({"removed": [execution.id for execution in removed], "dry_run": dry_run})
    elif not dry_run:
        print_message("removed; clew gc frees the space")

"""`clew gc`: delete stored content that no execution uses."""

import click

from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, yes_option
from clew.cli.output import confirm, format_count, format_size, print_json, print_message


@click.command("gc", short_help=COMMANDS["gc"], epilog="Example: clew gc --dry-run")
@dry_run_option
@yes_option
@json_option
def command(dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete stored content that no execution uses any more, and the cache of repeats.

    Content that a running execution stores meanwhile is kept.
    """
    import clew

    with clew.open() as project:
        reclaimed = project.gc(dry_run=True)
        if reclaimed.files and not dry_run:
            count = format_count(reclaimed.files, "content")
            confirm(
                f"this deletes {count} ({format_size(reclaimed.bytes)}) that no execution uses",
                "Delete?",
                yes=yes,
                hint="add --yes to delete, or --dry-run to only show it",
            )
        if (reclaimed.files or reclaimed.cached) and not dry_run:
            reclaimed = project.gc()
    if as_json:
        print_json({**reclaimed.as_json(), "dry_run": dry_run})
        return
    verb = "would free" if dry_run else "freed"
    if reclaimed.files:
        print_message(
            f"{verb} {format_size(reclaimed.bytes)} ({format_count(reclaimed.files, 'content')})"
        )
    if reclaimed.cached:
        print_message(f"{verb} {format_size(reclaimed.cached)} of the cache of repeats")
    if not reclaimed.files and not reclaimed.cached:
        print_message("nothing to free")

"""`clew gc`: free the space of what was forgotten."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, yes_option
from clew.cli.output import confirm, counted, print_json, remark, size


@click.command("gc", short_help=COMMANDS["gc"], epilog="Example: clew gc --dry-run")
@dry_run_option
@yes_option
@json_option
def command(dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove stored bytes that no execution has any more, and the cache of repeats.

    What a running execution stores meanwhile is left alone.
    """
    import clew

    with clew.open() as project:
        found = project.gc(dry_run=True)
        if found.files and not dry_run:
            told = counted(found.files, "content")
            confirm(
                f"this removes {told} ({size(found.bytes)}) that no execution has",
                "Remove?",
                yes=yes,
                hint="add --yes, or --dry-run to see only",
            )
        if (found.files or found.cached) and not dry_run:
            found = project.gc()
    if as_json:
        print_json({**found.as_json(), "dry_run": dry_run})
        return
    verb = "would free" if dry_run else "freed"
    if found.files:
        remark(f"{verb} {size(found.bytes)} ({counted(found.files, 'content')})")
    if found.cached:
        remark(f"{verb} {size(found.cached)} of the cache of repeats")
    if not found.files and not found.cached:
        remark("nothing to free")

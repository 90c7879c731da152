"""`clew status`: show the changes in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import escape, print_json, print_line, print_message, shorten_path


@click.command("status", short_help=COMMANDS["status"], epilog="Example: clew status work")
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(exists=True, path_type=Path)
)
@json_option
def command(folder: Path | None, as_json: bool) -> None:
    """Show the changes in the checkout that contains DIR, or the current directory."""
    import clew

    with clew.open(folder, checkout=True) as project:
        status = project.status(folder)
    if as_json:
        print_json(status.as_json())
        return
    checkout = f"{escape(shorten_path(status.folder))} is a checkout of {status.execution}"
    if status.clean:
        print_message(f"{checkout}, without changes")
        return
    print_message(f"{checkout}; changes:")
    print_changes(status.as_json())


def print_changes(changes: dict[str, Any]) -> None:
    """Print one line per changed file."""
    for file in changes["modified"]:
        mode = " ({} to {})".format(*file["mode"]) if file["mode"] else ""
        change = "modified" if file["content"] else "mode"
        print_line(f"{change:<8}  {escape(file['path'])}{mode}")
    for change in ("added", "deleted"):
        for file in changes[change]:
            print_line(f"{change:<8}  {escape(file['path'])}")

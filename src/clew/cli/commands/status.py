"""`clew status`: what was changed in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, nearest, print_json, remark, say


@click.command("status", short_help=COMMANDS["status"], epilog="Example: clew status work")
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(exists=True, path_type=Path)
)
@json_option
def command(folder: Path | None, as_json: bool) -> None:
    """Show what was changed in the checkout that DIR, or the current folder, lies in."""
    import clew

    with clew.open(folder, checkout=True) as project:
        found = project.status(folder)
    if as_json:
        print_json(found.as_json())
        return
    at = f"{clean(nearest(found.folder))} is a checkout of {found.execution}"
    if found.clean:
        remark(f"{at}, without changes")
        return
    remark(f"{at}; changed since:")
    report(found.as_json())


def report(changes: dict[str, Any]) -> None:
    """One line a file."""
    for one in changes["modified"]:
        mode = " ({} to {})".format(*one["mode"]) if one["mode"] else ""
        word = "modified" if one["content"] else "mode"
        say(f"{word:<8}  {clean(one['path'])}{mode}")
    for word in ("added", "deleted"):
        for one in changes[word]:
            say(f"{word:<8}  {clean(one['path'])}")

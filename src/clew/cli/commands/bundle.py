"""`clew bundle`: write executions with everything they need to one file."""

from pathlib import Path

import click

from clew.cli.completion.candidates import complete_executions
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import (
    format_count,
    format_size,
    print_json,
    print_message,
    print_table,
)
from clew.errors import UsageError


@click.group(
    "bundle",
    short_help=COMMANDS["bundle"],
    epilog="Example: clew bundle create e1 -o paper.clew.zip",
)
def command() -> None:
    """Hand on executions as one file, which clew pull FILE opens."""


@command.command(
    "create",
    epilog="Examples: clew bundle create e1 --list | clew bundle create e1 -o paper.clew.zip",
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True, shell_complete=complete_executions)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The new file.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Leave out these files.")
@click.option("--list", "list_them", is_flag=True, help="Only list what it would contain.")
@json_option
def create(
    ids: tuple[str, ...],
    output: Path | None,
    exclude: tuple[str, ...],
    list_them: bool,
    as_json: bool,
) -> None:
    """Write executions to one ZIP file, with every file that they need. Others open it with clew
    pull FILE, and repeat what is in it.

    With --list, the files are listed first, those that seem to hold a secret at the top. GLOB is
    matched against the whole path; of excluded files only the digests are written.
    """
    if not list_them and (output is None or output.suffix != ".zip"):
        raise UsageError(
            "name the file: -o NAME.clew.zip", hint="clew bundle create ID -o NAME.clew.zip"
        )
    import clew

    with clew.open() as project:
        if list_them:
            from clew.api.local.remotes.bundle import list_bundled_files

            files = list_bundled_files(project, ids, exclude)
        else:
            assert output is not None
            transfer = project.bundle(ids, output, exclude=exclude)
    if not list_them:
        if as_json:
            print_json(transfer.as_json())
        else:
            what = format_count(len(transfer.executions), "execution")
            print_message(f"wrote {output} ({what}, {format_size(transfer.bytes)})")
        return
    files.sort(key=lambda f: (f.secret is None, f.category in ("package", "system"), f.path))
    if as_json:
        print_json([
            {"execution": f.execution, "path": f.path, "class": f.category, "size": f.size,
             "digest": f.digest, "secret": f.secret} for f in files
        ])  # fmt: skip
        return
    print_table(
        ("execution", "class", "size", "secret", "path"),
        ((f.execution, f.category, format_size(f.size), f.secret or "", f.path) for f in files),
    )
    suspects = sum(f.secret is not None for f in files)
    if suspects:
        count = format_count(suspects, "file")
        print_message(f"clew: {count} may contain a secret; --exclude leaves files out")

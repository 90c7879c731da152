"""`clew restore`: a version of a file, brought back."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, version_argument, yes_option
from clew.cli.output import confirm, nearest, print_json, print_table, remark, size, when


@click.command(
    "restore",
    short_help=COMMANDS["restore"],
    epilog="Examples: clew restore data.csv --list | clew restore e1:data.csv@input | "
    "clew restore e1:model.pkl --to /tmp/",
)
@version_argument
@click.option(
    "--to", metavar="PATH", type=click.Path(), help="Write there instead; a folder keeps the name."
)
@click.option(
    "--list", "list_them", is_flag=True, help="List all versions of that file, or of a PATH."
)
@dry_run_option
@yes_option
@json_option
def command(
    version: str, to: str | None, list_them: bool, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Bring back VERSION, to where it was or to the path of --to.

    e2:PATH is what execution e2 left there, e2:PATH@input what it found, e2:PATH@N the N-th it
    met. A different file that stands in the place is overwritten without a question only if its
    content is stored, so that it can be brought back in turn.
    """
    if list_them:
        _list(version, as_json)
        return
    import clew

    with clew.open() as project:
        plan = project.restore(version, to=to, dry_run=True)
        if plan.loses and not dry_run:
            place = nearest(plan.path)
            confirm(
                f"{place} is different now, and its present content is stored nowhere",
                "Overwrite it?",
                yes=yes,
                hint="add --yes to overwrite it, or --to PATH to write elsewhere",
            )
        done = plan if dry_run else project.restore(version, to=to, overwrite=True)
    if as_json:
        print_json({**done.as_json(), "dry_run": dry_run})
        return
    verb = "would restore" if dry_run else "restored"
    remark(f"{verb} {nearest(done.path)} ({size(done.size)}) from {done.version}")
    if done.loses:
        remark(f"its content before {'is' if dry_run else 'was'} stored nowhere")
    elif done.replaces:
        remark(f"its content before: clew cat {done.replaces[:15]}")


def _list(path: str, as_json: bool) -> None:
    import clew
    from clew.errors import NotFound

    with clew.open() as project:
        versions = project.versions(path)
    if as_json:
        print_json([version.as_json() for version in versions])
        return
    if not versions:
        raise NotFound(f"no version of {path} is recorded", hint="clew list")
    print_table(
        ("version", "when", "how", "size", "digest"),
        (
            (
                version.id,
                when(version.document["at"]),
                "found" if version.found else "made",
                size(version.size),
                (version.digest or "")[:15] + ("" if version.stored else " (not stored)"),
            )
            for version in versions
        ),
    )

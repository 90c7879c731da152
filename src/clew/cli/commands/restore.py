"""`clew restore`: a version of a file, brought back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from clew.api import pipeline_artifacts as artifacts
from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, version_argument, yes_option
from clew.cli.output import confirm, counted, nearest, print_json, print_table, remark, size, when
from clew.safe_path import check_relative

if TYPE_CHECKING:
    from clew.api import Project
    from clew.api.results import Restored


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

    A version of an execution that was made elsewhere goes below the current folder. e2:PATH is
    what execution e2 left there, e2:PATH@input what it found, e2:PATH@N the N-th it met. A
    different file that stands in the place is overwritten without a question only if its
    content is stored, so that it can be brought back in turn. Of a pipeline run (r1), a task
    (r1/train) or an artifact that is a folder, all files are brought back; below the folder of
    --to, each has the name of its task before its own.
    """
    if list_them:
        _list(version, as_json)
        return
    import clew

    with clew.open() as project:
        aims = _aims(project, version, to)
        plans = [project.restore(one, to=place, dry_run=True) for one, place in aims]
        if any(plan.loses for plan in plans) and not dry_run:
            place = nearest(next(plan.path for plan in plans if plan.loses))
            confirm(
                f"{place} is different now, and its present content is stored nowhere",
                "Overwrite it?",
                yes=yes,
                hint="add --yes to overwrite it, or --to PATH to write elsewhere",
            )
        if not dry_run:
            plans = [project.restore(one, to=place, overwrite=True) for one, place in aims]
    if as_json:
        told = [{**plan.as_json(), "dry_run": dry_run} for plan in plans]
        print_json(told[0] if aims == [(version, to)] else told)
        return
    for plan in plans:
        _tell(plan, dry_run)
    if len(plans) > 1:
        remark(f"{counted(len(plans), 'file')} of {version}")


def _aims(project: Project, version: str, to: str | None) -> list[tuple[str, str | None]]:
    """What is to be restored, each with where to."""
    if artifacts.is_run_item(version):
        found = artifacts.list_files(project, version)
        if len(found) > 1 or not artifacts.is_artifact(version):
            for one in found:
                check_relative(os.fsencode(one.name))
            return [(one.version, os.path.join(to, one.name) if to else None) for one in found]
    return [(version, to)]


def _tell(done: Restored, dry_run: bool) -> None:
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

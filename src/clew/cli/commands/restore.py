"""`clew restore`: restore a version of a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from clew.api import pipeline_artifacts as artifacts
from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, version_argument, yes_option
from clew.cli.output import (
    confirm,
    format_count,
    format_size,
    format_time,
    print_json,
    print_message,
    print_table,
    shorten_path,
)
from clew.safe_path import check_relative

if TYPE_CHECKING:
    from clew.api.project import Project
    from clew.documents.files.versions import Restored


@click.command(
    "restore",
    short_help=COMMANDS["restore"],
    epilog="Examples: clew restore data.csv --list | clew restore e1:data.csv@input | "
    "clew restore e1:model.pkl --to /tmp/",
)
@version_argument
@click.option(
    "--to",
    metavar="PATH",
    type=click.Path(),
    help="Write there instead; in a directory, the file keeps its name.",
)
@click.option(
    "--list",
    "list_them",
    is_flag=True,
    help="List all versions of the file; VERSION may be a path.",
)
@dry_run_option
@yes_option
@json_option
def command(
    version: str, to: str | None, list_them: bool, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Restore VERSION to its original path or to --to.

    e2:PATH is the file as execution e2 left it, e2:PATH@input as e2 found it, and e2:PATH@N the
    N-th version that e2 used. Versions of executions that were recorded elsewhere are written
    below the current directory. An existing file is overwritten without a question only if its
    content is stored, so that it can be restored too. For a pipeline run (r1), a task (r1/train)
    or an artifact that is a directory, all files are restored; below --to they are grouped by
    task.
    """
    if list_them:
        _print_versions(version, as_json)
        return
    import clew

    with clew.open() as project:
        destinations = _list_destinations(project, version, to)
        plans = [project.restore(item, to=path, dry_run=True) for item, path in destinations]
        if any(plan.loses for plan in plans) and not dry_run:
            path = shorten_path(next(plan.path for plan in plans if plan.loses))
            confirm(
                f"{path} has changed, and its current content is not stored",
                "Overwrite it?",
                yes=yes,
                hint="add --yes to overwrite it, or --to PATH to write elsewhere",
            )
        if not dry_run:
            plans = [project.restore(item, to=path, overwrite=True) for item, path in destinations]
    if as_json:
        documents = [{**plan.as_json(), "dry_run": dry_run} for plan in plans]
        print_json(documents[0] if destinations == [(version, to)] else documents)
        return
    for plan in plans:
        _print_restored(plan, dry_run)
    if len(plans) > 1:
        print_message(f"{format_count(len(plans), 'file')} of {version}")


def _list_destinations(
    project: Project, version: str, to: str | None
) -> list[tuple[str, str | None]]:
    """The versions to restore, each with its destination."""
    if artifacts.is_run_item(version):
        files = artifacts.list_files(project, version)
        if len(files) > 1 or not artifacts.is_artifact(version):
            for file in files:
                check_relative(os.fsencode(file.name))
            return [(file.version, os.path.join(to, file.name) if to else None) for file in files]
    return [(version, to)]


def _print_restored(done: Restored, dry_run: bool) -> None:
    verb = "would restore" if dry_run else "restored"
    print_message(
        f"{verb} {shorten_path(done.path)} ({format_size(done.size)}) from {done.version}"
    )
    if done.loses:
        print_message(f"its previous content {'is' if dry_run else 'was'} not stored")
    elif done.replaces:
        print_message(f"its previous content: clew cat {done.replaces[:15]}")


def _print_versions(path: str, as_json: bool) -> None:
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
                format_time(version.at),
                "found" if version.found else "made",
                format_size(version.size),
                (version.digest or "")[:15] + ("" if version.stored else " (not stored)"),
            )
            for version in versions
        ),
    )

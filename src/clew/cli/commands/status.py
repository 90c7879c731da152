"""`clew status`: show the state of the project, or the changes in a checkout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option
from clew.cli.output import (
    escape,
    format_count,
    format_size,
    print_json,
    print_line,
    print_message,
    shorten_path,
)
from clew.project_directory import is_in_checkout

if TYPE_CHECKING:
    from clew.documents.files.checkouts import CheckoutStatus
    from clew.documents.project.status import ProjectStatus, StoreSize, TrackedFiles

_LISTED_IDS = 10


@click.command(
    "status", short_help=COMMANDS["status"], epilog="Examples: clew status | clew status work"
)
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(exists=True, path_type=Path)
)
@json_option
@pager_option
def command(folder: Path | None, as_json: bool) -> None:
    """Show the size of the project's store, the executions that are not pushed yet, and your files
    that are different from what executions read or wrote last.

    In a checkout, show its changes instead. DIR is a directory in the project or in the checkout;
    default: the current directory.
    """
    import clew

    in_checkout = is_in_checkout(folder or Path())
    with clew.open(folder, checkout=in_checkout) as project:
        status = project.checkout_status(folder) if in_checkout else project.status()
    if as_json:
        print_json(status.as_json())
    elif isinstance(status, clew.CheckoutStatus):
        _print_checkout(status)
    else:
        for line in _describe_project(status):
            print_line(line)


def _print_checkout(status: CheckoutStatus) -> None:
    checkout = f"{escape(shorten_path(status.folder))} is a checkout of {status.execution}"
    if status.clean:
        print_message(f"{checkout}, without changes")
        return
    print_message(f"{checkout}; changes:")
    for file in status.modified:
        mode = " ({} to {})".format(*file.mode) if file.mode else ""
        change = "modified" if file.content else "mode"
        print_line(f"{change:<8}  {escape(file.path)}{mode}")
    for change, files in (("added", status.added), ("deleted", status.deleted)):
        for other in files:
            print_line(f"{change:<8}  {escape(other.path)}")


def _describe_project(status: ProjectStatus) -> Iterator[str]:
    count = format_count(status.executions, "execution")
    yield f"project   {escape(status.project)}, {count}"
    yield ", ".join(_describe_store(status.store))
    if remote := status.remote:
        about = f"{escape(remote.name)} ({escape(remote.url)})"
        if remote.error is not None:
            yield f"remote    {about} not checked: {escape(remote.error)}"
        else:
            yield f"remote    {about}{_describe_missing(remote.executions, 'not pushed')}"
    if status.unsent is not None:
        yield f"server   {_describe_missing(status.unsent, 'not sent')}"
    yield from _describe_files(status.files)


def _describe_store(store: StoreSize) -> Iterator[str]:
    yield f"store     {format_size(store.bytes)}"
    if store.cached:
        yield f"cache {format_size(store.cached)}"
    if store.reclaimable is None:
        yield "clew gc or fsck is running"
    elif freed := store.reclaimable + store.cached:
        yield f"clew gc frees {format_size(freed)}"


def _describe_missing(ids: Sequence[str], what: str) -> str:
    if not ids:
        return " has every execution"
    named = " ".join(ids[-_LISTED_IDS:])
    more = "… " if len(ids) > _LISTED_IDS else ""
    return f" {format_count(len(ids), 'execution')} {what}: {more}{named}"


def _describe_files(files: TrackedFiles) -> Iterator[str]:
    counts = [f"{len(files.modified)} modified", f"{len(files.missing)} missing"]
    if files.unchecked_count:
        counts.append(f"{files.unchecked_count} not checked")
    yield f"files     {format_count(files.checked, 'recorded file')} of yours: {', '.join(counts)}"
    for word, changed in (("modified", files.modified), ("missing", files.missing)):
        for file in changed:
            yield f"{word:<8}  {escape(shorten_path(file.path))}  ({file.execution})"
    for unchecked in files.unchecked:
        yield f"unchecked {escape(shorten_path(unchecked.path))}: {escape(unchecked.why)}"
    if more := files.unchecked_count - len(files.unchecked):
        yield f"unchecked {format_count(more, 'more file')}"

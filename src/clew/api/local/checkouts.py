"""Check out an execution's files, list the changes, and run it with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from clew.api.local import notes
from clew.api.local.executions import find_execution
from clew.api.local.repeat import Say, run_plan
from clew.documents.executions.execution_list import Execution
from clew.documents.executions.repeats import Repeated
from clew.documents.files import checkouts as documents
from clew.documents.files.checkouts import CheckoutStatus, MissingFile
from clew.documents.ids import ExecutionId, Uid
from clew.errors import NotAllowed, NotFound
from clew.prov.locators import path_json
from clew.prov.queries import contents
from clew.prov.queries.execution_record import ExecutionRecord, load_record
from clew.replay.checkout import atomic_directory, working_tree
from clew.replay.checkout.changes import find_added_credentials, find_changes, scan_files
from clew.replay.checkout.commit_inputs import amend_files
from clew.replay.checkout.working_tree import MODE_BITS, Checkout, TrackedFile, checkout_path
from clew.replay.repeat import repeat_plan
from clew.replay.sandbox.initial_files import (
    InitialFiles,
    ReadListing,
    find_initial_files,
    make_listing_reader,
)
from clew.safe_path import SafeDirectory
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState


@dataclass(frozen=True)
class CheckoutOwner:
    """The project that checkouts belong to: local, or on a server."""

    uid: Uid
    root: str
    served: bool
    """CLEW_SERVER is set."""
    kept_digests: Callable[[Uid, set[str]], set[str]]
    """See `find_kept_digests`."""


def owner_of(project: ProjectState) -> CheckoutOwner:
    return CheckoutOwner(
        uid=project.uid,
        root=str(project.root),
        served=project.settings.server is not None,
        kept_digests=partial(find_kept_digests, project),
    )


class CheckoutContents(NamedTuple):
    """The files of a checkout of an execution."""

    execution: Uid
    id: ExecutionId
    cwd: str
    files: tuple[TrackedFile, ...]
    missing: tuple[MissingFile, ...]


def describe_checkout(project: ProjectState, text: str) -> CheckoutContents:
    record = load_record(project.graph, text)
    with Store(project.directory.store) as store:
        found = find_initial_files(record, make_listing_reader(store))
    cwd = record.itself.cwd or "/"
    return CheckoutContents(
        execution=record.execution.uid,
        id=record.execution.id,
        cwd=cwd,
        files=tuple(working_tree.list_files(record, found)),
        missing=tuple(MissingFile(**path_json(checkout_path(path, cwd))) for path in found.missing),
    )


def checkout(project: ProjectState, text: str, directory: Path | None) -> documents.Checkout:
    """Write the files of an execution to a directory."""
    found = describe_checkout(project, text)
    with Store(project.directory.store) as store:
        return write_checkout(owner_of(project), store, found, text, directory)


def write_checkout(
    owner: CheckoutOwner, store: Store, found: CheckoutContents, text: str, directory: Path | None
) -> documents.Checkout:
    """As `checkout`, from a store that has the contents."""
    at = (directory or Path(_name(text, found.id))).absolute().resolve()
    made = Checkout(
        directory=at,
        project=owner.uid,
        root=owner.root,
        execution=found.execution,
        id=found.id,
        cwd=found.cwd,
        files=found.files,
    )
    _check_not_nested(at)
    if at.exists():
        with atomic_directory.lock_directory(at):
            _write_files(owner, store, made)
    else:
        _write_files(owner, store, made)
    return documents.Checkout(
        execution=made.id,
        uid=made.execution,
        folder=str(at),
        files=len(made.files),
        bytes=sum(kept.size for kept in made.files),
        missing=found.missing,
    )


def _name(text: str, id_: str) -> str:
    """The default name of a checkout: what the user typed, or the id where that was a uid."""
    return id_ if len(text) == 32 or text in (".", "..") else text


def _check_not_nested(directory: Path) -> None:
    outer = working_tree.find_enclosing(directory.parent)
    if outer is not None:
        raise NotAllowed(
            f"{directory} would be inside a checkout of {outer.id}",
            hint=f"name another directory, or switch that one: clew checkout ID {outer.directory}",
        )


def _write_files(owner: CheckoutOwner, store: Store, made: Checkout) -> None:
    def unchanged(directory: Path) -> None:
        _check_replaceable(owner, store, made.directory, directory)

    if made.directory.exists():
        unchanged(made.directory)
    with atomic_directory.staging_directory(made.directory) as draft:
        places = SafeDirectory(draft)
        for kept in made.files:
            to = places.join(kept.place)
            store.restore(kept.digest, to, mode=kept.mode & MODE_BITS, mtime=kept.mtime, sync=False)
        made.of(draft).write()
        atomic_directory.publish(draft, made.directory, unchanged=unchanged)


def _check_replaceable(owner: CheckoutOwner, store: Store, name: Path, directory: Path) -> None:
    """Raise an error unless the content of `directory` (shown as `name`) may be replaced."""
    existing = working_tree.read_checkout(directory)
    if existing is None:
        if any(directory.iterdir()):
            raise NotAllowed(
                f"{name} is not empty and is not a checkout",
                hint="name another directory: clew checkout ID DIR",
            )
        return
    if existing.project != owner.uid:
        raise NotAllowed(f"{name} is a checkout of another project", hint="name another directory")
    now = scan_files(existing, store)
    unkept = _list_unkept(owner, existing)
    changed = [
        at for at in find_changes(existing, now).changed_paths if at in now or at not in unkept
    ]
    if changed:
        raise NotAllowed(
            f"{name}, a checkout of {existing.id}, has changes: {_format_paths(changed)}",
            hint=f"clew commit them, or name another directory; clew status {name} shows all",
        )
    lost = [place for place in unkept if place in now]
    if lost:
        raise NotAllowed(
            f"{name} has files that no execution has read: {_format_paths(lost)}",
            hint="move them elsewhere, or check out to another directory",
        )


def _format_paths(places: list[bytes]) -> str:
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return ", ".join(map(os.fsdecode, places[:3])) + more


def _list_unkept(owner: CheckoutOwner, checkout: Checkout) -> list[bytes]:
    """Committed files that no execution has: replacing the directory would lose them."""
    known = owner.kept_digests(checkout.execution, {kept.digest for kept in checkout.files})
    return [kept.place for kept in checkout.files if kept.digest not in known]


def find_kept_digests(project: ProjectState, execution: Uid, digests: set[str]) -> set[str]:
    """Those of `digests` that some execution has."""
    try:
        record = load_record(project.graph, execution)
        used = {version.digest for version in record.versions.values() if version.stored}
    except NotFound:  # it was removed
        used = set()
    known = contents.list_live_digests(project.graph) if digests - used else set()
    return digests & (used | known)


def status(project: ProjectState, directory: Path | None) -> CheckoutStatus:
    with Store(project.directory.store) as store:
        return status_of(find(owner_of(project), directory), store, project.directory.credentials)


def status_of(found: Checkout, store: Store, credentials: tuple[str, ...]) -> CheckoutStatus:
    """As `status`; the store caches the digests of files."""
    without = find_added_credentials(found, credentials)
    changes = find_changes(found, scan_files(found, store, without=without)).describe()
    return CheckoutStatus(
        execution=found.id,
        uid=found.execution,
        folder=str(found.directory),
        modified=changes.modified,
        added=changes.added,
        deleted=changes.deleted,
    )


def find(owner: CheckoutOwner, directory: Path | None) -> Checkout:
    found = working_tree.find_checkout((directory or Path()).absolute().resolve())
    if found.project != owner.uid:
        raise NotFound(
            f"{found.directory} is a checkout of another project, which was in {found.root}",
            hint="set CLEW_SERVER to the server of that project, or unset it"
            if owner.served
            else "set CLEW_PROJECT to the project if it was moved",
        )
    return found


def commit(
    project: ProjectState,
    directory: Path | None,
    *,
    message: str | None,
    network: bool,
    gpu: bool,
    quiet: bool,
    say: Say,
) -> Repeated:
    """Run the checked-out execution again with the changes. If it succeeds, the checkout moves to
    the new execution."""
    notes.check_notes({"message": message or ""})
    found = find(owner_of(project), directory)
    with atomic_directory.lock_directory(found.directory), Store(project.directory.store) as store:
        now = store_files(found, store, project.directory.credentials, say)
        return commit_files(
            project,
            found,
            now,
            message=message,
            network=network,
            gpu=gpu,
            quiet=quiet,
            say=say,
            on_recorded=lambda execution: move_checkout(found, now, execution),
        )


def store_files(
    found: Checkout, store: Store, credentials: tuple[str, ...], say: Say
) -> dict[bytes, TrackedFile]:
    """Store the files of a checkout except credential files."""
    without = find_added_credentials(found, credentials)
    for path in map(os.fsdecode, without.values()):
        say(
            f"{path} is a credential file and is not committed: if the command reads it, "
            f"provide it with --secret {path}=FILE"
        )
    now = scan_files(found, store, keep=True, without=without)
    store.flush()
    return now


def commit_files(
    project: ProjectState,
    found: Checkout,
    now: dict[bytes, TrackedFile],
    *,
    message: str | None,
    network: bool,
    gpu: bool,
    quiet: bool,
    say: Say,
    on_recorded: Callable[[Execution], None] = lambda _: None,
) -> Repeated:
    """As `commit`, with the stored files `now`; `on_recorded` is called with the new execution as
    soon as it is recorded."""
    changed = find_changes(found, now)
    if not changed:
        return unchanged_result(find_execution(project, found.execution), found)

    def notify_recorded(execution: Execution) -> None:
        if message:
            notes.note(project, execution.uid, {"message": message})
        on_recorded(execution)

    with Store(project.directory.store) as store:
        record, plan = _plan_commit(
            project, found, list(now.values()), store, network=network, gpu=gpu
        )
        for warning in plan.warnings:
            say(warning)
        document = run_plan(
            project,
            record,
            plan,
            kind="modification",
            network=network,
            incremental=True,
            quiet=quiet,
            on_recorded=notify_recorded,
        )
    return structs.replace(document, changes=changed.describe())


def unchanged_result(execution: Execution, found: Checkout) -> Repeated:
    """The result of a commit without changes."""
    changes = documents.Changes()
    return Repeated(execution=execution, of=found.id, verdict="identical", changes=changes)


def _plan_commit(
    project: ProjectState,
    found: Checkout,
    now: list[TrackedFile],
    store: Store,
    *,
    network: bool,
    gpu: bool,
) -> tuple[ExecutionRecord, repeat_plan.RepeatPlan]:
    try:
        record = load_record(project.graph, found.execution)
    except NotFound as error:
        raise NotFound(
            f"{found.id}, which this is a checkout of, was removed", hint="clew list"
        ) from error
    read_listing = make_listing_reader(store)
    plan = repeat_plan.make_plan(
        record, read_listing=read_listing, values=project.secrets, network=network, gpu=gpu
    )
    line = [(record, plan.initial_files), *_ancestors(project, record, read_listing)]
    entries = amend_files(line, found.files, now, store.read_whole)
    return record, plan.with_files(entries)


def _ancestors(
    project: ProjectState, record: ExecutionRecord, read_listing: ReadListing
) -> list[tuple[ExecutionRecord, InitialFiles]]:
    """The executions it was modified from, nearest first, as far as they are recorded."""
    found: list[tuple[ExecutionRecord, InitialFiles]] = []
    while True:
        document = find_execution(project, record.execution.uid)
        if document.kind != "modification" or document.parent is None:
            return found
        record = load_record(project.graph, document.parent)
        found.append((record, find_initial_files(record, read_listing)))


def move_checkout(found: Checkout, now: dict[bytes, TrackedFile], execution: Execution) -> None:
    """Make this a checkout of the new execution, if that succeeded."""
    if execution.state == "done" and execution.id:
        found.at(execution.uid, execution.id, now.values()).write()

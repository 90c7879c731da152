"""Resolve what a user typed to a version of a file, and read or restore its content.

No content is lost silently: before `restore` overwrites a file it hashes it, and refuses where
that content is not stored, unless `overwrite` is set.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.api.local.executions import find_execution
from clew.documents.document import to_nanoseconds
from clew.documents.files.versions import Restored, Version
from clew.documents.ids import Digest
from clew.errors import NoContent, NotAllowed, NotFound, UsageError
from clew.prov.locators import file_locator, path_json, path_of
from clew.prov.queries.files import list_versions
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.queries.pipelines.runs import resolve_task
from clew.prov.queries.targets import Target, resolve_target
from clew.redaction import make_withheld_matcher
from clew.replay.checkout.working_tree import MODE_BITS, checkout_path
from clew.safe_path import KERNEL_DIRECTORIES, SafeDirectory, check_relative
from clew.settings import machine_id
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

_NODE = re.compile(r"e\d{1,15}[.:].")


def locate(path: bytes) -> bytes:
    """The path as the witness records it: absolute, without symbolic links."""
    return os.path.realpath(path)


def hash_current_file(project: ProjectState, path: bytes) -> Digest | None:
    """The digest of the file at `path` now; None where there is no file."""
    if os.path.realpath(path).startswith(KERNEL_DIRECTORIES):
        return None
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with Store(project.directory.store) as store:
            return store.put_file(path, keep=False).digest
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        shown = os.fsdecode(path)
        raise NotAllowed(f"cannot read {shown}: {error.strerror}", hint=f"ls -l {shown}") from error


@dataclass(frozen=True)
class PathResolver:
    """Resolves paths on the machine of the caller, which may be a client of a server."""

    machine: str
    locate: Callable[[bytes], bytes]
    digest: Callable[[bytes], Digest | None]


def local_resolver(project: ProjectState) -> PathResolver:
    return PathResolver(
        machine_id(project.settings), locate, lambda path: hash_current_file(project, path)
    )


def find(
    project: ProjectState,
    text: str,
    here: PathResolver | None = None,
    *,
    as_of: datetime | None = None,
) -> Target:
    """What `text` names: an execution, a process, a version, or a file as it is now. A task of a
    pipeline run names its execution, and an artifact its version. `as_of`: when names of a cluster
    are looked up; None is now."""
    here = here or local_resolver(project)
    return resolve_target(
        project.graph,
        resolve_task(project.graph, text) or text,
        machine=here.machine,
        locate=here.locate,
        digest_of=here.digest,
        as_of=as_of_nanoseconds(as_of),
    )


def as_of_nanoseconds(as_of: datetime | None) -> int | None:
    """The time as the graph counts; in UTC if it has no zone, and not beyond what it can hold."""
    if as_of is None:
        return None
    at = to_nanoseconds(as_of if as_of.tzinfo else as_of.replace(tzinfo=UTC))
    return min(max(at, 0), FOREVER)


def find_node(project: ProjectState, text: str) -> Target | None:
    """What the id of a node of a lineage names; None if that was removed meanwhile. Names and paths
    are no such ids: nothing on this machine is looked at."""
    if not _NODE.match(text):
        return None
    try:
        return find(project, text)
    except NotFound:
        return None


def versions(project: ProjectState, path: str, here: PathResolver | None = None) -> list[Version]:
    """All versions of the file at `path`; `path` may also name a version."""
    here = here or local_resolver(project)
    locator = file_locator(here.machine, here.locate(os.fsencode(path)))
    rows = list_versions(project.graph, locator)
    if not rows:
        with suppress(NotFound):
            other = find(project, path, here).locator
            rows = list_versions(project.graph, other) if other else []
    return rows


def find_stored(project: ProjectState, text: str, here: PathResolver | None = None) -> Target:
    """The version that `text` names; its digest must be known."""
    found = find(project, text, here)
    if found.kind in ("execution", "process"):
        raise UsageError(
            f"{found.label} is not a version of a file", hint=f"clew show {found.label} --detail"
        )
    if found.digest is None:
        raise NoContent(
            f"the content of {found.label} was never recorded", hint=f"clew restore --list {text}"
        )
    if project.graph.is_restricted:
        from clew.prov.queries.cluster.visibility import check_content

        check_content(project.graph, found.digest)
    return found


def chunks(project: ProjectState, text: str, *, start: int = 0) -> Iterator[bytes]:
    """The content of a version from `start` on; verified against the digest if `start` is 0."""
    found = find_stored(project, text)
    assert found.digest is not None
    with Store(project.directory.store) as store:
        check_stored(project, store, found)
        if start:
            yield from store.read_part(found.digest, start, store.size(found.digest))
        else:
            yield from store.read(found.digest)


def restore(
    project: ProjectState, text: str, *, to: str | None, overwrite: bool, dry_run: bool
) -> Restored:
    found = find_stored(project, text)
    with Store(project.directory.store) as store:
        check_stored(project, store, found)
        below = None if to else find_foreign_cwd(project, found)
        plan = plan_restore(project, found, to, below, store)
        if not dry_run:
            write_version(store, found, plan, overwrite=overwrite, below=below)
    return plan


def find_foreign_cwd(project: ProjectState, found: Target) -> str | None:
    """The working directory of the execution that a version belongs to, if it was recorded on
    another machine. Such a version is restored below the current directory."""
    if found.execution is None:
        return None
    execution = find_execution(project, f"e{found.execution}")
    return (execution.cwd or "/") if execution.made_elsewhere else None


def plan_restore(
    project: ProjectState, found: Target, to: str | None, below: str | None, store: Store
) -> Restored:
    """Plan where a version would be written, and what it would replace."""
    assert found.digest is not None
    place = choose_destination(found, to, below)
    now = hash_current_file(project, place)
    differs = now is not None and now != found.digest
    return Restored(
        version=found.label,
        **path_json(place),
        digest=found.digest,
        size=store.size(found.digest) if found.size is None else found.size,
        replaces=now if differs else None,
        loses=now is not None and differs and not store.has(now),
    )


def write_version(
    store: Store, found: Target, plan: Restored, *, overwrite: bool, below: str | None
) -> None:
    """Write a version, unless content would be lost."""
    assert found.digest is not None
    digest, place = found.digest, plan.place
    check_overwrite(plan, overwrite=overwrite)

    def write(mode: int | None) -> None:
        store.restore(digest, place, mode=mode, mtime=found.mtime)

    write_file(found, place, write, below=below)


def check_overwrite(plan: Restored, *, overwrite: bool) -> None:
    if plan.loses and not overwrite:
        raise NotAllowed(
            f"{plan.path} has changed, and its current content is not stored",
            hint="restore it elsewhere with --to, or overwrite it with --yes",
        )


def check_stored(project: ProjectState, store: Store, found: Target) -> None:
    assert found.digest is not None
    if store.has(found.digest):
        return
    path = path_of(found.locator) if found.locator else None
    if path is not None and make_withheld_matcher(project.secrets.credentials)(os.fsdecode(path)):
        hint = "it holds credentials, which are never stored; record.credentials lists such files"
    elif found.locator and found.locator.startswith("s3://"):
        hint = f"its bytes are in the bucket: {found.locator}"
    else:
        hint = "it was excluded, or recorded with --no-content"
    raise NoContent(
        f"the content of {found.label} is not stored: only its digest was recorded", hint=hint
    )


def choose_destination(found: Target, to: str | None, below: str | None) -> bytes:
    """Where to write a version: to its original path, to the file `to`, or into the directory `to`.
    `below`: see `find_foreign_cwd`."""
    own = path_of(found.locator) if found.locator else None
    if to is None:
        if own is None:
            raise UsageError(f"{found.label} was never a file", hint="name one with --to")
        return own if below is None else _below_current(own, below)
    place = os.path.abspath(os.fsencode(to))
    if os.fsencode(to).endswith(b"/") or os.path.isdir(place):
        name = (
            own if own is not None else os.fsencode((found.locator or found.label).rsplit("/")[-1])
        )
        return os.path.join(place, os.path.basename(name))
    return place


def _below_current(own: bytes, cwd: str) -> bytes:
    """The path of a file in the current directory: its original path if that is inside, else the
    path it has in a checkout, relative to the working directory of its execution."""
    here = os.getcwdb()
    inside = own.startswith(here.rstrip(b"/") + b"/")
    relative = checkout_path(own, os.fsdecode(here) if inside else cwd)
    check_relative(relative)
    return os.path.join(here, relative)


def write_file(
    found: Target, place: bytes, write: Callable[[int | None], None], *, below: str | None
) -> None:
    """Call `write` with the mode of a version, after the directories of `place` are made.
    `below`: see `find_foreign_cwd`."""
    shown = os.fsdecode(place)
    if os.path.isdir(place):
        raise NotAllowed(f"{shown} is a directory", hint="name a file with --to")
    mode = None if found.mode is None else stat.S_IMODE(found.mode)
    try:
        if below is None:
            os.makedirs(os.path.dirname(place), exist_ok=True)
        else:
            here = os.getcwdb()
            SafeDirectory(here).join(os.path.relpath(place, here))
            mode = None if mode is None else mode & MODE_BITS
        write(mode)
    except OSError as error:
        raise NotAllowed(
            f"cannot write {shown}: {error.strerror}", hint="restore it elsewhere with --to"
        ) from error


def find_noted(project: ProjectState, text: str, here: PathResolver | None = None) -> Target:
    """Like `find`, but also finds files that no execution has used yet."""
    here = here or local_resolver(project)
    try:
        return find(project, text, here)
    except NotFound:
        place = here.locate(os.fsencode(text))
        digest = here.digest(place)
        if digest is None:
            raise
        locator = file_locator(here.machine, place)
        return Target("file", text, (), locator=locator, digest=digest)

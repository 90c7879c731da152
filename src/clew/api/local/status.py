"""The status of a project: its size on disk, executions that were not shared, changed files.

A file with a known signature (device, inode, size and times) is not read: the store's index has its
digest. Reading is limited; files beyond the limits are reported as not checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.api.delivery.unsent import list_unsent
from clew.api.local.executions import list_executions
from clew.api.local.remotes.push_pull import Endpoint, LocalEndpoint
from clew.documents.ids import ExecutionId, Uid
from clew.documents.project.status import (
    ChangedFile,
    ProjectStatus,
    ServedFile,
    ServedStatus,
    StoreSize,
    TrackedFiles,
    UncheckedFile,
    Unpushed,
)
from clew.errors import Busy, ClewError, NotFound
from clew.project_directory import ProjectDirectory, is_accepted
from clew.prov.locators import path_json
from clew.prov.queries.contents import list_live_digests
from clew.prov.queries.tracked_files import TrackedFile, list_tracked_files
from clew.remotes import load as load_remotes
from clew.safe_path import KERNEL_DIRECTORIES
from clew.settings import Settings, machine_id
from clew.store import Signature, Store

if TYPE_CHECKING:
    from clew.api.executions import Execution
    from clew.api.project_context import ProjectState

MOST_FILES = 100_000
MOST_BYTES = 1 << 30
"""Bytes that are read of files with unknown signatures."""
_LISTED = 100
"""Unchecked files that are listed; the others are only counted."""


def get_status(project: ProjectState) -> ProjectStatus:
    endpoint = LocalEndpoint(project)
    executions = endpoint.executions()
    tracked = list_tracked_files(project.graph, machine_id(project.settings))
    with Store(project.directory.store) as store:
        files = check_files(tracked, store)
    return ProjectStatus(
        project=str(project.root),
        uid=Uid(project.uid),
        executions=len(executions),
        store=measure_store(project),
        remote=find_unpushed(endpoint, executions, project.directory, project.settings),
        unsent=find_unsent(project),
        files=files,
    )


def measure_store(project: ProjectState) -> StoreSize:
    from clew.replay.sandbox.file_cache import clear_cache

    reclaimable = None
    with suppress(Busy), Store(project.directory.store) as store:
        reclaimable = store.gc(lambda: list_live_digests(project.graph), dry_run=True).bytes
    return StoreSize(
        bytes=measure_disk_usage(project.directory.store),
        reclaimable=reclaimable,
        cached=clear_cache(project.directory.cache, dry_run=True),
    )


def measure_disk_usage(directory: Path) -> int:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):  # other processes add and remove packs
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
    return total


def find_unpushed(
    endpoint: Endpoint,
    executions: Sequence[Execution],
    directory: ProjectDirectory,
    settings: Settings,
) -> Unpushed | None:
    """The executions that the default remote lacks; None if there is no default remote."""
    remotes = load_remotes(directory.path) if is_accepted(directory, settings) else None
    if remotes is None or remotes.default is None:
        return None
    about = Unpushed(
        name=remotes.default, url=remotes.urls[remotes.default], executions=(), error=None
    )
    try:
        with endpoint.remote(about.url) as remote:
            pushed = {name[:32] for name in remote.documents()}
    except NotFound:  # nothing was pushed yet
        pushed = set()
    except ClewError as error:
        return msgspec.structs.replace(about, error=error.message)
    missing = (found.id for found in executions if found.id and found.uid not in pushed)
    return msgspec.structs.replace(about, executions=tuple(missing))


def find_unsent(project: ProjectState) -> tuple[ExecutionId, ...] | None:
    """The executions recorded in a local project that the server does not have yet."""
    uids = list_unsent(project.directory)
    if not uids and project.settings.server is None:
        return None
    known = list_executions(project) if uids else ()
    ids = {str(found.uid): found.id for found in known if found.id}
    return tuple(ids[uid] for uid in uids if uid in ids)


def describe_served(project: ProjectState, machine: str) -> ServedStatus:
    """Describe the served project to a client on `machine`."""
    tracked = list_tracked_files(project.graph, machine, pulled=True)
    return ServedStatus(
        project=str(project.root),
        uid=Uid(project.uid),
        store=measure_store(project),
        files=tuple(
            ServedFile(
                **path_json(file.path),
                execution=file.execution,
                digest=file.digest,
                size=file.size,
            )
            for file in tracked[:MOST_FILES]
        ),
        other_files=max(0, len(tracked) - MOST_FILES),
    )


def check_files(tracked: Sequence[TrackedFile], store: Store, *, others: int = 0) -> TrackedFiles:
    """`others`: the number of tracked files beyond these, which count as not checked."""
    tracked = [file for file in tracked if _may_check(file.path)]
    return _FileCheck(store).run(tracked[:MOST_FILES], others + max(0, len(tracked) - MOST_FILES))


def _may_check(path: bytes) -> bool:
    """A server or a copied project may name any path; reading files of the kernel has effects."""
    is_normal = path.startswith(b"/") and b"\0" not in path and path == os.path.normpath(path)
    return is_normal and not path.startswith((b"//", *KERNEL_DIRECTORIES))


class _FileCheck:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._modified: list[TrackedFile] = []
        self._missing: list[TrackedFile] = []
        self._unchecked: list[tuple[TrackedFile, str]] = []
        self._same_size: list[tuple[TrackedFile, Signature]] = []

    def run(self, tracked: Sequence[TrackedFile], others: int) -> TrackedFiles:
        for file in tracked:
            self._compare_status(file)
        self._read(self._compare_signatures())
        return TrackedFiles(
            checked=len(tracked) - len(self._unchecked),
            modified=_changed(self._modified),
            missing=_changed(self._missing),
            unchecked=tuple(
                UncheckedFile(**path_json(file.path), execution=file.execution, why=why)
                for file, why in self._unchecked[:_LISTED]
            ),
            unchecked_count=len(self._unchecked) + others,
        )

    def _compare_status(self, file: TrackedFile) -> None:
        try:
            status = os.lstat(file.path)
        except (FileNotFoundError, NotADirectoryError):
            self._missing.append(file)
        except OSError as error:
            self._unchecked.append((file, error.strerror or "cannot be read"))
        else:
            if not stat.S_ISREG(status.st_mode) or status.st_size != file.size:
                self._modified.append(file)
            else:
                self._same_size.append((file, Signature.of(status)))

    def _compare_signatures(self) -> list[TrackedFile]:
        """Compare the files with known signatures; returns the others."""
        known = self._store.known_digests([signature for _, signature in self._same_size])
        unknown = []
        for (file, _), digest in zip(self._same_size, known, strict=True):
            if digest is None:
                unknown.append(file)
            elif digest != file.digest:
                self._modified.append(file)
        return unknown

    def _read(self, files: list[TrackedFile]) -> None:
        left = MOST_BYTES
        chosen = []
        for file in files:
            if file.size > left:
                self._unchecked.append((file, "too large to read now"))
                continue
            left -= file.size
            chosen.append(file)
        results = self._store.put_files([file.path for file in chosen], keep=False)
        for file, result in zip(chosen, results, strict=True):
            if isinstance(result, NotFound):
                self._missing.append(file)
            elif isinstance(result, ClewError):
                self._unchecked.append((file, result.message))
            elif result.digest != file.digest:
                self._modified.append(file)


def _changed(files: Iterable[TrackedFile]) -> tuple[ChangedFile, ...]:
    ordered = sorted(files, key=lambda file: file.path)
    return tuple(ChangedFile(**path_json(file.path), execution=file.execution) for file in ordered)

"""The documents of `clew status`: what a project stores, what is not shared yet, and which files
are different from their record."""

from __future__ import annotations

from typing import Any

import msgspec


class StoreSize(msgspec.Struct, frozen=True, kw_only=True):
    """What a project takes on disk, in bytes."""

    bytes: int
    """The store of content."""
    reclaimable: int | None
    """What `clew gc` would free in the store; null while another gc or fsck runs."""
    cached: int
    """The cache of repeats, which `clew gc` empties, too."""


class Unpushed(msgspec.Struct, frozen=True, kw_only=True):
    """Executions that a remote does not have."""

    name: str
    url: str
    executions: tuple[str, ...]
    error: str | None
    """Why the remote could not be asked."""


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose content is not what an execution read or wrote last."""

    path: str
    path_b64: str | msgspec.UnsetType = msgspec.UNSET
    execution: str


class UncheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    path_b64: str | msgspec.UnsetType = msgspec.UNSET
    execution: str
    why: str


class TrackedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The user's own files that executions read or wrote, compared with the disk."""

    checked: int
    modified: tuple[ChangedFile, ...]
    missing: tuple[ChangedFile, ...]
    unchecked: tuple[UncheckedFile, ...]
    """The first ones."""
    unchecked_count: int


class ServedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A tracked file of the caller's machine, as an execution read or wrote it last."""

    path: str
    path_b64: str | msgspec.UnsetType = msgspec.UNSET
    execution: str
    digest: str
    size: int


class ServedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a server knows about the status of its project."""

    project: str
    uid: str
    store: StoreSize
    files: tuple[ServedFile, ...]
    """Those that were used last; a client compares them with its disk."""
    other_files: int
    """The number of tracked files that are not listed."""


class ProjectStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a project."""

    project: str
    """Its directory."""
    uid: str
    executions: int
    store: StoreSize
    remote: Unpushed | None
    """About the default remote, if there is one."""
    unsent: tuple[str, ...] | None
    """Executions that were recorded here and that the server does not have yet; null if no server
    is set and nothing waits for one."""
    files: TrackedFiles

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

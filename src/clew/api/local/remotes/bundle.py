"""Bundles: executions with everything they need in one ZIP file, which `clew pull` reads.

The file holds a remote (docs/formats/remote.md). What the sender excludes is not in it: the record
then says of that content that only its digest was kept.
"""

from __future__ import annotations

import fnmatch
import os
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from clew.api.local.remotes.push_pull import Endpoint, push
from clew.documents.ids import Digest, Uid
from clew.errors import ClewError, Exists
from clew.prov.events import Content, from_batch, to_batch
from clew.redaction.text_scan import find_in_text
from clew.store.errors import from_os

if TYPE_CHECKING:
    from clew.api.project import Project
    from clew.documents.executions.push_pull import Transfer

_SCANNED = 1 << 20
"""Bytes: a file of the user's that is larger is not searched for secrets."""


@dataclass(frozen=True)
class BundledFile:
    """A file whose bytes a bundle has."""

    execution: str
    path: str
    category: str
    size: int
    digest: Digest
    secret: str | None
    """The kind of secret it seems to hold: a token, or the name of a password."""


def list_bundled_files(
    project: Project, ids: Iterable[str], exclude: Sequence[str]
) -> list[BundledFile]:
    """The files that a bundle of these executions would have. The user's own are searched for
    secrets."""
    found = []
    for id_ in ids:
        execution = project.execution(id_)
        for file in execution.files:
            if file.digest is None or _is_excluded(file.path, exclude):
                continue
            own = file.category not in ("package", "system")
            secret = None
            if own and (file.size or 0) <= _SCANNED:
                secret = _find_secret(project, f"{execution.id}:{file.path}")
            found.append(
                BundledFile(
                    execution.id or "",
                    file.path,
                    file.category,
                    file.size or 0,
                    file.digest,
                    secret,
                )
            )
    return found


def _find_secret(project: Project, version: str) -> str | None:
    try:
        text = project.read(version, most=_SCANNED).decode()
    except (ClewError, UnicodeDecodeError):
        return None
    return next((finding.name for finding in find_in_text(text)), None)


def write_bundle(
    project: Project, end: Endpoint, ids: Sequence[str], to: Path, *, exclude: Sequence[str]
) -> Transfer:
    """Write the executions to the new file `to`, complete or not at all."""
    if to.exists():
        raise Exists(f"{to} already exists", hint="choose another name, or remove it")
    excluded = {
        file.digest
        for id_ in ids
        for file in project.execution(id_).files
        if file.digest and _is_excluded(file.path, exclude)
    }
    reduced = cast(Endpoint, _WithoutContents(end, excluded)) if excluded else end
    try:
        with tempfile.TemporaryDirectory(dir=to.parent, prefix=f".{to.name}.") as draft:
            transfer = push(reduced, f"{draft}/remote", ids, None)
            _zip(Path(draft) / "remote", Path(draft) / to.name)
            (Path(draft) / to.name).rename(to)
    except OSError as error:
        raise from_os(error, doing=f"write {to}") from error
    return msgspec.structs.replace(transfer, url=os.fspath(to), bytes=to.stat().st_size)


def _is_excluded(path: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, glob) for glob in globs)


def _zip(directory: Path, to: Path) -> None:
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(directory))


class _WithoutContents:
    """An endpoint that sends executions without some of their contents."""

    def __init__(self, end: Endpoint, excluded: set[Digest]) -> None:
        self._end = end
        self._excluded = excluded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)

    def contents(self, uid: Uid) -> set[Digest]:
        return self._end.contents(uid) - self._excluded

    def events(self, uid: Uid) -> bytes:
        return to_batch([self._reduce(event) for event in from_batch(self._end.events(uid))])

    def _reduce(self, event: Any) -> Any:
        if isinstance(event, Content) and event.digest in self._excluded:
            return msgspec.structs.replace(event, stored=False)
        return event

    def signed(self, uid: Uid) -> tuple[bytes, str] | None:
        """The signature holds for the record with its contents only."""
        return self._end.signed(uid) if not self._excluded & self._end.contents(uid) else None

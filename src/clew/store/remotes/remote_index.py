"""An index of a remote's packs, and the documents of its executions.

The name of a pack is the digest of its table, so a table never changes: the index is cached in the
project, and only new tables are fetched. A table is written after its pack, and a document after
all tables it needs, so nothing names content that is not there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import blake3

from clew.documents.ids import Uid
from clew.errors import ClewError, Damaged, NotAllowed, NotFound
from clew.store.index import Index, open_in_memory
from clew.store.packs import pack_format
from clew.store.remotes.object_storage import DIRECTORIES, ObjectStorage, open_storage

FORMAT = b"clew-remote 1\n"
_PARALLEL_REQUESTS = 16
"""Small objects that are fetched at the same time, since each costs a round trip."""
_MAX_TABLE = pack_format.MAX_TABLE + 1024
"""Bytes of a table with its footer."""
_MAX_DOCUMENT = 8 << 20
"""Bytes."""
_TABLE = re.compile(r"[0-9a-f]{32}")
_DOCUMENT = re.compile(r"([0-9a-f]{32})\.[0-9a-f]{32}")

Name = TypeVar("Name", bound=str)


class Remote:
    """An open remote."""

    def __init__(self, storage: ObjectStorage, index: Index) -> None:
        self.storage = storage
        self.index = index
        self.damaged: list[str] = []
        """Damaged tables; they are ignored."""

    @property
    def url(self) -> str:
        return self.storage.url

    def close(self) -> None:
        self.index.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- content

    parallel_packs = 3

    def find_missing_chunks(self, chunks: Sequence[bytes]) -> set[bytes]:
        """Those of these chunks that the remote does not have."""
        present = {d for d, _ in self.index.known(chunks) if self.index.locate(d) is not None}
        return set(chunks) - present

    def find_missing_records(self, contents: Sequence[bytes]) -> set[bytes]:
        """Those of these contents whose chunk lists the remote does not have."""
        return {digest for digest in contents if self.index.file(digest) is None}

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        """Write a pack, then its table; returns the bytes of both."""
        name = pack_format.tail_name(tail)
        self.storage.put(f"packs/{name}.pack", pack)
        self.storage.put(f"tables/{name}", tail)
        return len(pack) + len(tail)

    # -- documents

    def documents(self) -> list[str]:
        """The names of all documents: the uid of the execution, and the document's digest."""
        return [name for name in self.storage.names("executions") if _DOCUMENT.fullmatch(name)]

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Verified documents by name, without those that are damaged or missing."""
        found = _fetch(
            names, lambda name: _get(self.storage, f"executions/{name}", most=_MAX_DOCUMENT)
        )
        return {
            name: data
            for name, data in found.items()
            if data is not None and document_name(Uid(name[:32]), data) == name
        }

    def publish(self, uid: Uid, document: bytes) -> int:
        """Write a document after everything that it names; returns its size."""
        name = document_name(uid, document)
        if not _DOCUMENT.fullmatch(name):
            raise Damaged(f"{uid[:80]!r} is not the uid of an execution")
        self.storage.put(f"executions/{name}", document)
        return len(document)


def document_name(uid: Uid, document: bytes) -> str:
    return f"{uid}.{blake3.blake3(document).hexdigest(length=16)}"


def open_remote(
    url: str, options: Mapping[str, str], *, cache: Path | None = None, make: bool = False
) -> Remote:
    """Open the remote at `url`; with `make`, create it if it does not exist."""
    storage = open_storage(url, options)
    version = storage.get("format", most=1024)
    if version is None:
        if not storage.top_level_names() <= {
            "format",
            *DIRECTORIES,
        }:  # another process may be creating one
            raise NotAllowed(
                f"{url} is not a remote and not empty",
                hint="name an empty directory or prefix",
            )
        if not make:
            raise NotFound(f"there is no remote at {url}", hint=f"clew push {url} makes one")
    elif version != FORMAT:
        text = version[:40].decode(errors="replace").strip()
        raise ClewError(
            f"{url} has another format: {text}",
            hint="use the version of Clew that made it, or a newer one",
        )
    if make:
        storage.make()
        if version is None:
            storage.put("format", FORMAT)
    remote = Remote(storage, _open_cached_index(url, cache))
    try:
        _update_index(remote)
    except BaseException:
        remote.close()
        raise
    return remote


def _open_cached_index(url: str, cache: Path | None) -> Index:
    """The index of earlier commands, or a new one in memory if there is no cache."""
    if cache is None:
        return open_in_memory()
    file = cache / "remotes" / f"{blake3.blake3(url.encode()).hexdigest(length=8)}.db"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return Index(file)
    except (OSError, ClewError):
        with contextlib.suppress(OSError):
            for part in file.parent.glob(f"{file.name}*"):
                part.unlink()
        return open_in_memory()


def _update_index(remote: Remote) -> None:
    """Add new tables whose packs exist; rebuild the index if a known pack is gone."""
    storage, index = remote.storage, remote.index
    listed = {name.removesuffix(".pack") for name in storage.names("packs")}
    there = {name for name in storage.names("tables") if _TABLE.fullmatch(name)} & listed
    known = {name for _, name, _ in index.packs()}
    gone = known - there  # their chunks may be in other packs too, so rebuild
    wanted = sorted(there if gone else there - known)
    if gone:
        with index.writing() as db:
            index.clear(db)
    for at in range(0, len(wanted), _PARALLEL_REQUESTS):  # tables may be large: keep few in memory
        _fetch_tables(remote, wanted[at : at + _PARALLEL_REQUESTS])
    known = {name for _, name, _ in index.packs()}
    if there - known - set(remote.damaged):  # another process rebuilt it meanwhile
        _update_index(remote)


def _fetch_tables(remote: Remote, names: list[str]) -> None:
    tails = _fetch(names, lambda name: _get(remote.storage, f"tables/{name}", most=_MAX_TABLE))
    with remote.index.writing() as db:
        known = {name for _, name, _ in remote.index.packs()}  # another process may add tables too
        for name in names:
            table = _table(name, tails[name])
            if table is None:
                remote.damaged.append(name)
            elif name not in known:
                remote.index.add_pack(db, name, table[1], table[0])


def _get(storage: ObjectStorage, name: str, *, most: int) -> bytes | None:
    """An object; None if it is missing, too large or not a file."""
    try:
        return storage.get(name, most=most)
    except Damaged:
        return None


def _table(name: str, tail: bytes | None) -> tuple[pack_format.Table, int] | None:
    """The table and the size of its pack; None if it is damaged."""
    if tail is None or pack_format.tail_name(tail) != name:
        return None
    try:
        return pack_format.read_tail(tail, where=name)
    except Damaged:
        return None


def _fetch(names: Iterable[Name], get: Callable[[Name], bytes | None]) -> dict[Name, bytes | None]:
    wanted = list(names)
    if not wanted:
        return {}
    with ThreadPoolExecutor(_PARALLEL_REQUESTS, thread_name_prefix="clew-remote") as pool:
        return dict(zip(wanted, pool.map(get, wanted), strict=True))

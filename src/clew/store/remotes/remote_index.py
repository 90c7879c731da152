"""What a remote holds: an index of its packs' tables, and the documents of executions.

A pack's name is the digest of its table, so a table that was read once is known for good: the
index is kept in the project's cache, and only tables that are new there are fetched. A table is
put after its pack, and a document after all the tables it relies on: nothing names content
before it is there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import blake3

from clew.errors import ClewError, Damaged, NotAllowed, NotFound
from clew.store.index import Index, in_memory
from clew.store.packs import pack_format
from clew.store.remotes.object_storage import DIRECTORIES, Place, place_of

FORMAT = b"clew-remote 1\n"
_AT_ONCE = 16
"""Small objects asked for at once: each costs a round trip."""
_TAIL = pack_format.MOST_TABLE + 1024
"""Bytes of a table as an object, with its footer."""
_DOCUMENT_SIZE = 8 << 20
"""Bytes of a document, at most."""
_TABLE = re.compile(r"[0-9a-f]{32}")
_DOCUMENT = re.compile(r"([0-9a-f]{32})\.[0-9a-f]{32}")

Name = TypeVar("Name", bound=str)


class Remote:
    """A remote, opened: what it holds, and what can be put there."""

    def __init__(self, place: Place, index: Index) -> None:
        self.place = place
        self.index = index
        self.damaged: list[str] = []
        """Tables that are not what they say: as if they were not there."""

    @property
    def url(self) -> str:
        return self.place.url

    def close(self) -> None:
        self.index.close()

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- content

    at_once = 3

    def lacking(self, chunks: Sequence[bytes]) -> set[bytes]:
        """Those of these chunks that are not here."""
        here = {d for d, _ in self.index.known(chunks) if self.index.place(d) is not None}
        return set(chunks) - here

    def untold(self, contents: Sequence[bytes]) -> set[bytes]:
        """Those of these contents that have no record here."""
        return {digest for digest in contents if self.index.file(digest) is None}

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        """Put a pack, and then its table; the bytes of both."""
        name = pack_format.tail_name(tail)
        self.place.put(f"packs/{name}.pack", pack)
        self.place.put(f"tables/{name}", tail)
        return len(pack) + len(tail)

    # -- documents

    def documents(self) -> list[str]:
        """The names of all documents: a uid and the digest of what it says of it."""
        return [name for name in self.place.names("executions") if _DOCUMENT.fullmatch(name)]

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """Documents by name, verified; those that are damaged or missing are left out."""
        found = _fetch(
            names, lambda name: _get(self.place, f"executions/{name}", most=_DOCUMENT_SIZE)
        )
        return {
            name: data
            for name, data in found.items()
            if data is not None and document_name(name[:32], data) == name
        }

    def publish(self, uid: str, document: bytes) -> int:
        """Put a document, once all that it names is there; the bytes it took."""
        self.place.put(f"executions/{document_name(uid, document)}", document)
        return len(document)


def document_name(uid: str, document: bytes) -> str:
    return f"{uid}.{blake3.blake3(document).hexdigest(length=16)}"


def open_remote(
    url: str, options: Mapping[str, str], *, cache: Path | None = None, make: bool = False
) -> Remote:
    """The remote at `url`; with `make` one is made where nothing is."""
    place = place_of(url, options)
    found = place.get("format", most=1024)
    if found is None:
        if not place.tops() <= {"format", *DIRECTORIES}:  # some of it: somebody is just making one
            raise NotAllowed(
                f"{url} is no remote, and holds other things",
                hint="name an empty directory or prefix",
            )
        if not make:
            raise NotFound(f"there is no remote at {url}", hint=f"clew push {url} makes one")
    elif found != FORMAT:
        said = found[:40].decode(errors="replace").strip()
        raise ClewError(
            f"{url} is of another format: {said}",
            hint="use the version of Clew that made it, or a newer one",
        )
    if make:
        place.make()
        if found is None:
            place.put("format", FORMAT)
    remote = Remote(place, _index(url, cache))
    try:
        _learn(remote)
    except BaseException:
        remote.close()
        raise
    return remote


def _index(url: str, cache: Path | None) -> Index:
    """What was learnt of this remote before, if it can be kept."""
    if cache is None:
        return in_memory()
    file = cache / "remotes" / f"{blake3.blake3(url.encode()).hexdigest(length=8)}.db"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return Index(file)
    except (OSError, ClewError):
        with contextlib.suppress(OSError):
            for part in file.parent.glob(f"{file.name}*"):
                part.unlink()
        return in_memory()


def _learn(remote: Remote) -> None:
    """Bring the index up to what is there: tables whose packs are there, too."""
    place, index = remote.place, remote.index
    listed = {name.removesuffix(".pack") for name in place.names("packs")}
    there = {name for name in place.names("tables") if _TABLE.fullmatch(name)} & listed
    known = {name for _, name, _ in index.packs()}
    gone = known - there  # what they held may be in others as well, so begin anew
    wanted = sorted(there if gone else there - known)
    if gone:
        with index.writing() as db:
            index.clear(db)
    for at in range(0, len(wanted), _AT_ONCE):  # tables may be large: few at a time in memory
        _learn_some(remote, wanted[at : at + _AT_ONCE])
    known = {name for _, name, _ in index.packs()}
    if there - known - set(remote.damaged):  # another began anew meanwhile
        _learn(remote)


def _learn_some(remote: Remote, names: list[str]) -> None:
    tails = _fetch(names, lambda name: _get(remote.place, f"tables/{name}", most=_TAIL))
    with remote.index.writing() as db:
        known = {name for _, name, _ in remote.index.packs()}  # others may learn, too
        for name in names:
            table = _table(name, tails[name])
            if table is None:
                remote.damaged.append(name)
            elif name not in known:
                remote.index.add_pack(db, name, table[1], table[0])


def _get(place: Place, name: str, *, most: int) -> bytes | None:
    """An object; None where it is missing, too large or not a file."""
    try:
        return place.get(name, most=most)
    except Damaged:
        return None


def _table(name: str, tail: bytes | None) -> tuple[pack_format.Table, int] | None:
    """The table and the size of its pack; None when it is not what its name says."""
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
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="clew-remote") as pool:
        return dict(zip(wanted, pool.map(get, wanted), strict=True))

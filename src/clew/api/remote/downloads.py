"""Answers that are more than a document: bytes, folders, and work that says how it goes."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.api.delivery.http_client import Server, error_from
from clew.errors import ClewError, Damaged, NotAllowed
from clew.safe_path import SafeFolder, check_escaped

if TYPE_CHECKING:
    from clew.api.project import StrPath

_WORK_SECONDS = 3600.0
"""Seconds in which even a large image is made."""
_HEARTBEAT_SECONDS = 60.0
"""Seconds without a word after which a server that works is taken for gone: it says something
every few."""


@contextmanager
def open_stream(
    server: Server, name: str, asked: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], Iterator[bytes]]]:
    """What is to be known of some bytes, and the bytes."""
    body = json.dumps(asked).encode()
    with server.open("POST", f"/api/v1/commands/{name}", body, seconds=_WORK_SECONDS) as answer:
        yield json.loads(answer.line()), answer.pieces()


def verify(pieces: Iterator[bytes], digest: str) -> Iterator[bytes]:
    """Bytes as they come; Damaged at their end, if they are not those."""
    import blake3

    found = blake3.blake3()
    for piece in pieces:
        found.update(piece)
        yield piece
    if f"blake3:{found.hexdigest()}" != digest:
        raise Damaged(f"{digest} did not arrive whole", hint="clew fsck")


def run_command(
    server: Server,
    name: str,
    asked: dict[str, Any],
    say: Callable[[str], None],
    *,
    transfer: str | None = None,
) -> dict[str, Any]:
    """What work on the server comes to; `say` is told what it says on the way, and what it prints
    is printed. `transfer`: by which what it needs was sent."""
    body = json.dumps(asked).encode()
    query = {"for": transfer} if transfer else {}
    path = f"/api/v1/commands/{name}"
    with server.open("POST", path, body, query=query, seconds=_HEARTBEAT_SECONDS) as answer:
        while line := answer.line():
            found = json.loads(line)
            if "said" in found:
                say(found["said"])
            elif "printed" in found:
                _print(found["to"], b64decode(found["printed"]))
            elif "error" in found:
                said = found["error"]
                names = said.get("secrets", ())
                raise error_from(said["code"], said["message"], said["hint"], 500, names)
            elif "answer" in found:
                document: dict[str, Any] = found["answer"]
                return document
    raise ClewError(f"{server.url} ended before it was done", hint="ask again")


def _print(descriptor: int, data: bytes) -> None:
    if descriptor not in (1, 2):  # any other is a file or a connection of ours
        raise Damaged("the server prints where it may not", hint="do not trust the server")
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def check_new_directory(place: StrPath | None) -> None:
    if place is None:
        return
    path = Path(fspath(place))
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise NotAllowed(f"{place} exists already", hint="name a new folder with --keep")


def download_directory(server: Server, name: str, asked: dict[str, Any], place: Path) -> None:
    """A folder that the server makes, laid out in `place`."""
    with open_stream(server, name, asked) as (_, pieces):
        unpack(pieces, place)


def unpack(pieces: Iterator[bytes], place: Path, *, escaped: bool = True) -> None:
    """Extract a folder from its tar: it is there whole, or not at all. `escaped`: it may hold no
    project and no repository (`clew.safe_path`)."""
    from clew.api.local.export import new_directory

    with new_directory(place) as draft:
        draft.mkdir()
        try:
            with tarfile.open(fileobj=io.BufferedReader(_Reader(pieces)), mode="r|") as tar:
                _extract(tar, draft, escaped=escaped)
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise Damaged(f"the server sent no folder that can be used: {error}") from error


def _extract(tar: tarfile.TarFile, folder: Path, *, escaped: bool) -> None:
    """Write the files, folders and symbolic links of an archive, and refuse all else.

    Python's `data` filter decides about files and folders. A link is written as it is, wherever it
    leads, which that filter does not allow: nothing is ever written through one.
    """
    places = SafeFolder(folder)
    for member in tar:
        name = os.fsencode(os.path.normpath(member.name))
        if escaped:
            check_escaped(name)
        if member.issym():
            os.symlink(os.fsencode(member.linkname), places.join(name))  # noqa: PTH211 (bytes)
            continue
        plain = tarfile.data_filter(member, os.fspath(folder))
        if plain.isdir():
            if name != b".":
                places.make_folder(name)
        elif plain.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not plain.issparse():
            _write_file(tar, plain, places.join(name))
        else:
            raise Damaged(f"the server sent {member.name[:200]!r}, which is neither file nor link")


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: bytes) -> None:
    source = tar.extractfile(member)
    assert source is not None
    with open(place, "xb") as file:
        shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), (member.mode or 0o600) & 0o777)
        file.flush()
        os.utime(file.fileno(), (member.mtime, member.mtime))


class _Reader(io.RawIOBase):
    """Pieces, as a file that is read in order."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or next(self._pieces, b"")
        found, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)

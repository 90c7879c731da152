"""Answers that are more than a document: bytes, folders, and work that says how it goes."""

from __future__ import annotations

import io
import json
import os
import tarfile
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.api.remote.asking import Server, problem
from clew.errors import ClewError, Damaged, NotAllowed

if TYPE_CHECKING:
    from clew.api.archive import Place

_WORK = 3600.0
"""Seconds in which even a large image is made."""
_BEAT = 60.0
"""Seconds without a word after which a server that works is taken for gone: it says something
every few."""


@contextmanager
def behind(
    server: Server, name: str, asked: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], Iterator[bytes]]]:
    """What is to be known of some bytes, and the bytes."""
    body = json.dumps(asked).encode()
    with server.open("POST", f"/api/v1/commands/{name}", body, seconds=_WORK) as answer:
        yield json.loads(answer.line()), answer.pieces()


def verified(pieces: Iterator[bytes], digest: str) -> Iterator[bytes]:
    """Bytes as they come; Damaged at their end, if they are not those."""
    import blake3

    found = blake3.blake3()
    for piece in pieces:
        found.update(piece)
        yield piece
    if f"blake3:{found.hexdigest()}" != digest:
        raise Damaged(f"{digest} did not arrive whole", hint="clew fsck")


def told(
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
    with server.open("POST", path, body, query=query, seconds=_BEAT) as answer:
        while line := answer.line():
            found = json.loads(line)
            if "said" in found:
                say(found["said"])
            elif "printed" in found:
                _print(found["to"], b64decode(found["printed"]))
            elif "error" in found:
                said = found["error"]
                names = said.get("secrets", ())
                raise problem(said["code"], said["message"], said["hint"], 500, names)
            elif "answer" in found:
                document: dict[str, Any] = found["answer"]
                return document
    raise ClewError(f"{server.url} ended before it was done", hint="ask again")


def _print(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def may_be_made(place: Place | None) -> None:
    if place is None:
        return
    path = Path(fspath(place))
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise NotAllowed(f"{place} exists already", hint="name a new folder with --keep")


def folder(server: Server, name: str, asked: dict[str, Any], place: Path) -> None:
    """A folder that the server makes, laid out in `place`."""
    with behind(server, name, asked) as (_, pieces):
        unpack(pieces, place)


def unpack(pieces: Iterator[bytes], place: Path) -> None:
    """A folder from its tar: there whole, or not at all."""
    from clew.api.exports import new_folder

    with new_folder(place) as draft:
        draft.mkdir()
        with tarfile.open(fileobj=io.BufferedReader(_Reader(pieces)), mode="r|") as tar:
            tar.extractall(draft, filter="tar")


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

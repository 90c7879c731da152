"""List the files in stored zip and tar archives, with their digests.

Archives are untrusted: the number of members, the length of their headers and the bytes they unpack
to are limited, and nothing is unpacked to disk. What was listed up to a limit or a damaged place
counts. The list of an archive is cached, because its content never changes.
"""

import json
import lzma
import os
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, NamedTuple

from blake3 import blake3

from clew.bounded_tar import BoundedTar
from clew.documents.ids import Digest
from clew.errors import ClewError, NoContent
from clew.store.content_store import Store

_LARGEST = 256 << 20
_UNPACKED = 512 << 20
_MEMBERS = 20_000
_DIRECTORY = 16 << 20
"""Bytes of the directory of a zip archive."""
_LONGEST_NAME = 500
_PIECE = 1 << 20
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, struct.error, zlib.error, lzma.LZMAError),
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError, IndexError, OverflowError),
)
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma"}


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    size: int


Members = Mapping[bytes, Member]
"""The files of an archive by the digests of their bytes."""


def list_members(store: Path, cache: Path, digest: Digest) -> Members:
    """The members of a stored archive; none if it cannot be read."""
    place = cache / "archives" / f"{digest.removeprefix('blake3:')}.json"
    with suppress(OSError, ValueError, TypeError):
        known = json.loads(place.read_bytes())
        return {bytes.fromhex(key): Member(*value) for key, value in known.items()}
    try:
        with Store(store) as contents, tempfile.TemporaryFile() as file:
            if contents.size(digest) > _LARGEST:  # independent of what the record claims
                return {}
            file.writelines(contents.read(digest))
            found = dict(_hash_members(file))
    except (ClewError, OSError):
        return {}
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({key.hex(): member for key, member in found.items()}))
        draft.replace(place)
    return found


def extract_member(store: Store, archive: Digest, digest: Digest) -> None:
    """Store the bytes of the member that has this digest; NoContent if there is none."""
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as copy, suppress(*_DAMAGED):
        file.writelines(store.read(archive))
        for _, pieces in _open_members(file):
            whole = blake3()
            copy.seek(0)
            copy.truncate()
            for piece in pieces:
                whole.update(piece)
                copy.write(piece)
            if digest == f"blake3:{whole.hexdigest()}":
                copy.seek(0)
                store.put_stream(iter(lambda: copy.read(_PIECE), b""))
                return
    raise NoContent(f"the archive {archive} has no member {digest}")


def _hash_members(file: IO[bytes]) -> Iterator[tuple[bytes, Member]]:
    with suppress(*_DAMAGED):
        for name, pieces in _open_members(file):
            whole, size = blake3(), 0
            for piece in pieces:
                whole.update(piece)
                size += len(piece)
            yield whole.digest(), Member(name[-_LONGEST_NAME:], size)


class _Room:
    """How many bytes may still be unpacked."""

    def __init__(self) -> None:
        self._left = _UNPACKED

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ValueError("the archive unpacks to too many bytes")

    def read(self, member: IO[bytes]) -> Iterator[bytes]:
        while piece := member.read(_PIECE):
            self.spend(len(piece))
            yield piece


def _open_members(file: IO[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The names and bytes of an archive's files. The caller reads each before the next."""
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    return _zip_members(file) if start.startswith(b"PK\x03\x04") else _tar_members(file, start)


def _zip_members(file: IO[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    if _directory_size(file) > _DIRECTORY:
        return
    room = _Room()
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist()[:_MEMBERS]:
            plain = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if not info.is_dir() and plain and not info.flag_bits & 0x1:  # encrypted
                with archive.open(info) as member:
                    yield info.filename, room.read(member)


def _directory_size(file: IO[bytes]) -> int:
    """The size of a zip archive's directory, which `zipfile` reads at once. It must be the size
    that `zipfile` finds: an archive can have two ends."""
    end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    return int(end[zipfile._ECD_SIZE]) if end else 0  # type: ignore[attr-defined]


class _Tar(BoundedTar):
    most_members = _MEMBERS
    most_extended = _DIRECTORY


def _tar_members(file: IO[bytes], start: bytes) -> Iterator[tuple[str, Iterator[bytes]]]:
    for magic, name in _COMPRESSED.items():
        if start.startswith(magic):
            file = import_module(name).open(file)
    room = _Room()
    with _Tar.open(fileobj=file, mode="r|") as archive:
        for info in archive:
            if not info.isreg():
                room.spend(info.size)  # which `tarfile` skips
            elif member := archive.extractfile(info):
                yield info.name, room.read(member)

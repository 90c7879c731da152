"""List the files in stored zip and tar archives, with their digests.

Archives are untrusted: the number of members, the length of their headers and the bytes they unpack
to are limited, and nothing is unpacked to disk. What was listed up to a limit or a damaged place
counts. The list of an archive is cached, because its content never changes.
"""

from __future__ import annotations

import io
import json
import lzma
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from blake3 import blake3

from clew.bounded_tar import BoundedTar
from clew.errors import ClewError
from clew.store.content_store import Store

_UNPACKED = 512 << 20
_MEMBERS = 20_000
_DIRECTORY = 16 << 20
"""Bytes of the directory of a zip archive."""
_LONGEST_NAME = 500
_PIECE = 1 << 20
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError, IndexError, OverflowError),
)
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma"}


class Member(NamedTuple):
    """A file in an archive."""

    name: str
    size: int


Members = Mapping[bytes, Member]
"""The files of an archive by the digests of their bytes."""


def list_members(store: Path, cache: Path, digest: str) -> Members:
    """The members of a stored archive; none if it cannot be read."""
    place = cache / "archives" / f"{digest.removeprefix('blake3:')}.json"
    with suppress(OSError, ValueError, TypeError):
        known = json.loads(place.read_bytes())
        return {bytes.fromhex(key): Member(*value) for key, value in known.items()}
    try:
        with Store(store) as contents, tempfile.TemporaryFile() as file:
            for piece in contents.read(digest):
                file.write(piece)
            found = dict(_hash_members(file))
    except (ClewError, OSError):
        return {}
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({key.hex(): member for key, member in found.items()}))
        draft.replace(place)
    return found


def _hash_members(file: IO[bytes]) -> Iterator[tuple[bytes, Member]]:
    file.seek(0)
    start = file.read(8)
    file.seek(0)
    try:
        if start.startswith(b"PK\x03\x04"):
            yield from _zip_members(file)
        else:
            yield from _tar_members(file, start)
    except _DAMAGED:
        return


def _zip_members(file: IO[bytes]) -> Iterator[tuple[bytes, Member]]:
    if _directory_size(file) > _DIRECTORY:
        return
    room = _UNPACKED
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist()[:_MEMBERS]:
            plain = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
            if info.is_dir() or not plain or info.flag_bits & 0x1:  # encrypted
                continue
            with archive.open(info) as member:
                digest, size = _hash(member, room)
            room -= size
            yield digest, Member(info.filename[-_LONGEST_NAME:], size)


def _directory_size(file: IO[bytes]) -> int:
    """The size of a zip archive's directory, which `zipfile` reads at once."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(end - (1 << 16) - 22, 0))
    tail = file.read()
    record = tail[tail.rfind(b"PK\x05\x06") :]
    return int.from_bytes(record[12:16], "little")


class _Tar(BoundedTar):
    most_members = _MEMBERS
    most_extended = _DIRECTORY


def _tar_members(file: IO[bytes], start: bytes) -> Iterator[tuple[bytes, Member]]:
    import importlib

    for magic, name in _COMPRESSED.items():
        if start.startswith(magic):
            file = importlib.import_module(name).open(file)
    room = _UNPACKED
    with _Tar.open(fileobj=file, mode="r|") as archive:
        for info in archive:
            room -= info.size + tarfile.BLOCKSIZE
            if room < 0:
                return
            member = archive.extractfile(info) if info.isreg() else None
            if member is not None:
                digest, size = _hash(member, info.size)
                yield digest, Member(info.name[-_LONGEST_NAME:], size)


def _hash(member: IO[bytes], most: int) -> tuple[bytes, int]:
    whole = blake3()
    size = 0
    while piece := member.read(_PIECE):
        size += len(piece)
        if size > most:
            raise ValueError("it unpacks to too many bytes")
        whole.update(piece)
    return whole.digest(), size

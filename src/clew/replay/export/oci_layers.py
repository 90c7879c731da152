"""Split the files of an image into a few layers, shared ones below.

System files, language packages and all other files are one layer each, so that another execution
with the same programs shares the lower ones. Layers are tar archives, generated as they are read
and reproducible byte for byte; no file is held in memory.
"""

import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from clew.errors import Damaged
from clew.prov.file_classes import classify
from clew.replay.export.portable_execution import PortableExecution
from clew.replay.sandbox.initial_files import Entry
from clew.safe_path import check_relative

ReadContent = Callable[[str], Iterable[bytes]]
"""Reads the bytes of a content in blocks."""

TITLES = ("system", "packages", "files")
_RUNTIME_DIRECTORIES = (b"/dev", b"/proc", b"/sys")
"""Directories that a container runtime fills."""
_SITE_PACKAGES = (b"/site-packages/", b"/dist-packages/")
_BLOCK = 512
_ZEROS = bytes(1 << 16)
_TYPES = {"directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


@dataclass(frozen=True)
class Layer:
    """Paths in order, directories before their content."""

    title: str
    entries: tuple[tuple[bytes, Entry], ...]


def split_layers(execution: PortableExecution) -> list[Layer]:
    """Put every path in one layer; directories in each layer that has something in them."""
    entries = execution.plan.initial_files.entries | {
        path: Entry("directory") for path in _RUNTIME_DIRECTORIES
    }
    parts: list[set[bytes]] = [set(), set(), set()]
    for path, entry in entries.items():
        if entry.kind != "directory":
            part = parts[_layer_number(path, execution.plan.packages.get(path))]
            while len(path) > 1 and path not in part:
                part.add(path)
                path = os.path.dirname(path)  # noqa: PLW2901 (up to the root)
    parts[2] |= entries.keys() - parts[0] - parts[1]
    layers = zip(TITLES, parts, strict=True)
    return [Layer(t, tuple((p, entries[p]) for p in sorted(part))) for t, part in layers if part]


def _layer_number(path: bytes, package: str | None) -> int:
    if package is None and any(site in path for site in _SITE_PACKAGES):
        return 1
    return {"system": 0, "package": 1}.get(classify(path + b"/", package), 2)


def tar_layer(layer: Layer, execution: PortableExecution, read: ReadContent) -> Iterator[bytes]:
    """A layer as a tar archive."""
    for path, entry in layer.entries:
        check_relative(path[1:])
        uid, gid, mode = execution.ownership(path, entry)
        info = tarfile.TarInfo(os.fsdecode(path[1:]))
        info.type = _TYPES.get(entry.kind, tarfile.REGTYPE)
        info.uid, info.gid, info.mode = uid, gid, mode
        info.linkname = os.fsdecode(entry.target)
        info.size = entry.size if entry.kind in ("file", "stub") else 0
        yield tar_header(info, mtime=entry.mtime)
        if info.size:
            pieces = read(entry.digest) if entry.kind == "file" else _zeros(entry.size)
            yield from pad_content(pieces, info.size)
    yield bytes(2 * _BLOCK)


def tar_header(info: tarfile.TarInfo, *, mtime: int = 0) -> bytes:
    """The header of a file in an archive; times have nanosecond precision."""
    seconds, rest = divmod(max(mtime, 0), 10**9)
    info.mtime = seconds
    if rest:
        info.pax_headers = {"mtime": f"{seconds}.{rest:09d}"}
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def pad_content(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The bytes of a file in an archive, padded to full blocks."""
    left = size
    for piece in pieces:
        left -= len(piece)
        yield piece
    if left:
        raise Damaged(f"a file of {size} bytes has {size - left}", hint="clew fsck")
    yield bytes(-size % _BLOCK)


def _zeros(size: int) -> Iterator[bytes]:
    whole, rest = divmod(size, len(_ZEROS))
    for _ in range(whole):
        yield _ZEROS
    yield _ZEROS[:rest]

"""Packages that pipelines come in: YAML, alone or in a zip or tar.gz.

What a package is, is seen by its first bytes. Nothing is unpacked further than a pipeline can be
large, whatever an archive says of itself.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from typing import IO

from clew.bounded_tar import BoundedTar
from clew.errors import UsageError
from clew.server.parsing import compiled_pipelines

MAX_BYTES = 32 << 20
"""Bytes of a package, and of the pipeline in it."""
_MOST_UNPACKED = 256 << 20
"""Bytes of a tar that are gone through to find it."""
_YAML = (".yaml", ".yml")
_FIRST = "pipeline.yaml"
"""Which it is where there are several."""
_CENTRAL = b"PK\x01\x02"
_HINT = "upload what the kfp SDK compiles: .yaml, .yml, .zip or .tar.gz"


def read_package(file: IO[bytes]) -> str:
    """The pipeline in a package, as the catalogue keeps it."""
    first = file.read(4)
    file.seek(0)
    try:
        if first[:2] == b"\x1f\x8b":
            data = _from_tar(file)
        elif first == b"PK\x03\x04":
            data = _from_zip(file)
        else:
            data = _bounded(file)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
        raise UsageError(f"the package cannot be unpacked: {error}", hint=_HINT) from error
    except (NotImplementedError, RuntimeError) as error:  # how it is packed, or a password
        raise UsageError(f"the package cannot be unpacked: {error}", hint=_HINT) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("the package is no text in UTF-8", hint=_HINT) from error
    return compiled_pipelines.normalize_text(text)


def _from_zip(file: IO[bytes]) -> bytes:
    whole = file.read()
    if whole.count(_CENTRAL) > BoundedTar.most_members:
        raise UsageError("the package holds too many files", hint=_HINT)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        names = [one.filename for one in archive.infolist() if not one.is_dir()]
        with archive.open(_chosen(names)) as member:
            return _bounded(member)


def _from_tar(file: IO[bytes]) -> bytes:
    names: list[str] = []
    first = b""
    unpacked = _Counted(fileobj=file, mode="rb")
    with BoundedTar.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            inside = archive.extractfile(member) if name.endswith(_YAML) else None
            if inside is None:
                continue
            names.append(name)
            if name == _FIRST:
                return _bounded(inside)
            first = first or _bounded(inside)
    _chosen(names)
    return first


class _Counted(gzip.GzipFile):
    """A stream that ends with an error when it goes on for too long."""

    _left = _MOST_UNPACKED

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self._left -= len(found)
        if self._left < 0:
            raise UsageError("the package unpacks to more than a pipeline can be", hint=_HINT)
        return found


def _chosen(names: list[str]) -> str:
    found = [name for name in names if name.endswith(_YAML)]
    if _FIRST in found:
        return _FIRST
    if len(found) != 1:
        what = "several YAML files and no pipeline.yaml" if found else "no YAML file"
        raise UsageError(f"the package holds {what}", hint=_HINT)
    return found[0]


def _bounded(file: IO[bytes]) -> bytes:
    found = file.read(MAX_BYTES + 1)
    if len(found) > MAX_BYTES:
        raise UsageError(f"the pipeline is larger than {MAX_BYTES >> 20} MB", hint=_HINT)
    return found

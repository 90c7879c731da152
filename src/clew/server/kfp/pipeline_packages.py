"""Reads uploaded pipeline packages: YAML, plain or in a zip or tar.gz archive.

The first bytes tell the format. Unpacking stops at the size limit of a pipeline, whatever sizes the
archive declares.
"""

import gzip
import tarfile
import zipfile
import zlib
from typing import IO

from clew.bounded_tar import BoundedTar
from clew.errors import UsageError
from clew.server.parsing import compiled_pipelines

MAX_BYTES = 32 << 20
"""The largest package, and the largest pipeline in it."""
_MAX_UNPACKED_BYTES = 256 << 20
"""How much of a tar is read to find the pipeline."""
_YAML = (".yaml", ".yml")
_DEFAULT_NAME = "pipeline.yaml"
"""The pipeline, if the archive contains several YAML files."""
_ZIP_ENTRY = b"PK\x01\x02"
_HINT = "upload what the kfp SDK compiles: .yaml, .yml, .zip or .tar.gz"


def read_package(file: IO[bytes]) -> str:
    """The pipeline in a package, as the text that the catalogue stores."""
    first = file.read(4)
    file.seek(0)
    try:
        if first[:2] == b"\x1f\x8b":
            data = _from_tar(file)
        elif first == b"PK\x03\x04":
            data = _from_zip(file)
        else:
            data = _read_limited(file)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
        raise UsageError(f"the package cannot be unpacked: {error}", hint=_HINT) from error
    except (NotImplementedError, RuntimeError) as error:  # unsupported compression, or a password
        raise UsageError(f"the package cannot be unpacked: {error}", hint=_HINT) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("the pipeline is not UTF-8 text", hint=_HINT) from error
    return compiled_pipelines.normalize_text(text)


def _from_zip(file: IO[bytes]) -> bytes:
    if file.read().count(_ZIP_ENTRY) > BoundedTar.most_members:
        raise UsageError("the package contains too many files", hint=_HINT)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        with archive.open(_find_pipeline(names)) as member:
            return _read_limited(member)


def _from_tar(file: IO[bytes]) -> bytes:
    names: list[str] = []
    first = b""
    unpacked = _LimitedGzip(fileobj=file, mode="rb")
    with BoundedTar.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            content = archive.extractfile(member) if name.endswith(_YAML) else None
            if content is None:
                continue
            names.append(name)
            if name == _DEFAULT_NAME:
                return _read_limited(content)
            first = first or _read_limited(content)
    _find_pipeline(names)
    return first


class _LimitedGzip(gzip.GzipFile):
    """Fails when the unpacked data becomes too large."""

    _left = _MAX_UNPACKED_BYTES

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._left -= len(data)
        if self._left < 0:
            raise UsageError("the unpacked package is too large", hint=_HINT)
        return data


def _find_pipeline(names: list[str]) -> str:
    yaml_names = [name for name in names if name.endswith(_YAML)]
    if _DEFAULT_NAME in yaml_names:
        return _DEFAULT_NAME
    if len(yaml_names) != 1:
        what = "several YAML files and no pipeline.yaml" if yaml_names else "no YAML file"
        raise UsageError(f"the package contains {what}", hint=_HINT)
    return yaml_names[0]


def _read_limited(file: IO[bytes]) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"the pipeline is larger than {MAX_BYTES >> 20} MB", hint=_HINT)
    return data

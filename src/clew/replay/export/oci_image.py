"""Write an execution as an OCI image: the files it found and the command it ran.

One tar archive holds an OCI image layout, which containerd, Podman, skopeo and umoci read, and a
`manifest.json` for Docker. The same record gives the same digests. Layers are compressed into a
scratch directory first, since the archive names each blob by its digest; no file is held in memory.
"""

import hashlib
import json
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from clew.documents.ids import Digest
from clew.errors import ClewError, Damaged
from clew.prov.file_classes import classify
from clew.prov.queries.formats import format_time
from clew.replay.export.portability import PortableExecution
from clew.replay.sandbox.initial_files import Entry
from clew.safe_path import check_relative

_OCI = "application/vnd.oci.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
_GZIP = 16 + zlib.MAX_WBITS
_COMPRESSION_LEVEL = 1  # three times as fast as the usual level, and a tenth larger
_BLOCK_SIZE = 1 << 20
MAX_IMAGE_SIZE = 1 << 42
"""Bytes in an image. Stubs count: they are as large as the record claims."""
ReadContent = Callable[[Digest], Iterable[bytes]]
"""Reads the bytes of a content in blocks."""

TITLES = ("system", "packages", "files")
_RUNTIME_DIRECTORIES = (b"/dev", b"/proc", b"/sys")
"""Directories that a container runtime fills."""
_SITE_PACKAGES = (b"/site-packages/", b"/dist-packages/")
_TAR_BLOCK = 512
_ZEROS = bytes(1 << 16)
_TYPES = {"directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


@dataclass(frozen=True)
class Layer:
    """Paths in order, directories before their content."""

    title: str
    entries: tuple[tuple[bytes, Entry], ...]


@dataclass(frozen=True)
class _Blob:
    """A file of the layout, named by its digest."""

    media: str
    content: bytes | Path
    size: int
    digest: str
    inner: str = ""
    """The digest of the uncompressed content."""

    @property
    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": self.media, "digest": f"sha256:{self.digest}", "size": self.size}

    @property
    def path(self) -> str:
        return f"blobs/sha256/{self.digest}"


def image_name(execution: PortableExecution) -> str:
    """The name of the image; it includes a registry host, which Kubernetes requires."""
    return f"docker.io/clew/{execution.id}:{execution.uid[:8]}"


def write_image(
    execution: PortableExecution, out: BinaryIO, *, read: ReadContent, scratch: Path
) -> None:
    """Write the image as one archive. `scratch`: a directory with space for its layers."""
    parts = split_layers(execution)
    size = sum(entry.size for part in parts for _, entry in part.entries)
    if size > MAX_IMAGE_SIZE:
        raise ClewError(
            f"{execution.id} found files of {size / 1e12:.1f} TB, which is too much for an image",
            hint="clew checkout writes only the files that were read",
        )
    blobs = [_compress(part, execution, read, scratch / part.title) for part in parts]
    config = _json_blob("config.v1+json", _config(execution, parts, blobs))
    manifest = _json_blob("manifest.v1+json", _manifest(config, blobs))
    for name, content in _index_files(execution, config, manifest, blobs).items():
        _add_file(out, name, content, len(content))
    for blob in {blob.digest: blob for blob in (manifest, config, *blobs)}.values():
        _add_file(out, blob.path, blob.content, blob.size)
    out.write(bytes(1024))


def _config(execution: PortableExecution, parts: list[Layer], blobs: list[_Blob]) -> dict[str, Any]:
    machine = str(execution.plan.facets.get("cpu", {}).get("architecture", ""))
    created = format_time(execution.ended)
    labels = {"clew.execution": execution.uid, "clew.redacted": ",".join(execution.redacted)}
    return {
        "created": created,
        "architecture": _ARCHITECTURES.get(machine, machine or "amd64"),
        "os": "linux",
        "config": {
            "User": "{}:{}".format(*execution.user),
            "Env": [f"{name}={value}" for name, value in sorted(execution.plan.environ.items())],
            "Cmd": list(execution.plan.command),
            "WorkingDir": execution.plan.cwd,
            "Labels": {name: value for name, value in labels.items() if value},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{blob.inner}" for blob in blobs]},
        "history": [{"created": created, "created_by": f"clew: {p.title}"} for p in parts],
    }


def _manifest(config: _Blob, blobs: list[_Blob]) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": config.descriptor,
        "layers": [blob.descriptor for blob in blobs],
    }


def _index_files(
    execution: PortableExecution, config: _Blob, manifest: _Blob, blobs: list[_Blob]
) -> dict[str, bytes]:
    """The files before the blobs that lead to them."""
    name = image_name(execution)
    named = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.index.v1+json",
        "manifests": [{**manifest.descriptor, "annotations": named}],
    }
    docker = {"Config": config.path, "RepoTags": [name], "Layers": [b.path for b in blobs]}
    return {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        "manifest.json": _json([docker]),
    }


def _compress(layer: Layer, execution: PortableExecution, read: ReadContent, path: Path) -> _Blob:
    inner, outer = hashlib.sha256(), hashlib.sha256()
    squeeze = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, _GZIP)
    with open(path, "wb") as file:

        def put(piece: bytes) -> None:
            outer.update(piece)
            file.write(piece)

        for piece in _merge_blocks(tar_layer(layer, execution, read)):
            inner.update(piece)
            put(squeeze.compress(piece))
        put(squeeze.flush())
        size = file.tell()
    media = f"{_OCI}.layer.v1.tar+gzip"
    return _Blob(media, path, size, outer.hexdigest(), inner.hexdigest())


def _merge_blocks(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """Merge small blocks, which compress slowly."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _BLOCK_SIZE:
            yield b"".join(held)
            held.clear()
            size = 0
    yield b"".join(held)


def _json_blob(kind: str, value: dict[str, Any]) -> _Blob:
    content = _json(value)
    media = f"{_OCI}.{kind}"
    return _Blob(media, content, len(content), hashlib.sha256(content).hexdigest())


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _add_file(out: BinaryIO, name: str, content: bytes | Path, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    out.write(tar_header(info))
    if isinstance(content, Path):
        with open(content, "rb") as file:
            shutil.copyfileobj(file, out, _BLOCK_SIZE)
        content.unlink()
        content = b""
    out.write(content + bytes(-size % _TAR_BLOCK))


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
    yield bytes(2 * _TAR_BLOCK)


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
    yield bytes(-size % _TAR_BLOCK)


def _zeros(size: int) -> Iterator[bytes]:
    whole, rest = divmod(size, len(_ZEROS))
    for _ in range(whole):
        yield _ZEROS
    yield _ZEROS[:rest]

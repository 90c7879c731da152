"""Write an execution as an OCI image: the files it found and the command it ran.

One tar archive holds an OCI image layout, which containerd, Podman, skopeo and umoci read, and a
`manifest.json` for Docker. The same record gives the same digests. Layers are compressed into a
scratch directory first, since the archive names each blob by its digest; no file is held in memory.
"""

import hashlib
import json
import shutil
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from clew.errors import ClewError
from clew.prov.queries.formats import format_time
from clew.replay.export.oci_layers import Layer, ReadContent, split_layers, tar_header, tar_layer
from clew.replay.export.portable_execution import PortableExecution

_OCI = "application/vnd.oci.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
_GZIP = 16 + zlib.MAX_WBITS
_COMPRESSION_LEVEL = 1  # three times as fast as the usual level, and a tenth larger
_BLOCK_SIZE = 1 << 20
MAX_IMAGE_SIZE = 1 << 42
"""Bytes in an image. Stubs count: they are as large as the record claims."""


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
    out.write(content + bytes(-size % 512))

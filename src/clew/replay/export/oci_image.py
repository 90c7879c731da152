"""An execution as an OCI image: what it found, what it ran, and nothing else.

One tar archive that holds an image layout, which containerd, Podman, skopeo and umoci read, and
a `manifest.json` by which Docker does. The same record gives the same digests. Layers are
compressed into a scratch folder first, since an archive names a blob by its digest before it;
no file is held in memory.
"""

from __future__ import annotations

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
from clew.prov.queries.formats import moment
from clew.replay.export.oci_layers import Layer, Read, archive, header, layers
from clew.replay.export.portable_execution import Portable

_OCI = "application/vnd.oci.image"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 1  # three times as fast as the usual level, and a tenth larger
_PIECE = 1 << 20
LARGEST = 1 << 42
"""Bytes in an image. Files that were only looked at count, and are as large as a record claims."""


@dataclass(frozen=True)
class _Blob:
    """A file of the layout, named by its digest."""

    media: str
    content: bytes | Path
    size: int
    digest: str
    inner: str = ""
    """The digest of what is compressed in it."""

    @property
    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": self.media, "digest": f"sha256:{self.digest}", "size": self.size}

    @property
    def path(self) -> str:
        return f"blobs/sha256/{self.digest}"


def reference(what: Portable) -> str:
    """The image's name; with a host, as Kubernetes asks for it."""
    return f"docker.io/clew/{what.id}:{what.uid[:8]}"


def write_image(what: Portable, out: BinaryIO, *, read: Read, scratch: Path) -> None:
    """Write the image as one archive. `scratch` is a folder with room for its layers."""
    parts = layers(what)
    size = sum(entry.size for part in parts for _, entry in part.entries)
    if size > LARGEST:
        raise ClewError(
            f"{what.id} found files of {size / 1e12:.1f} TB, which is too much for an image",
            hint="clew checkout lays out what was read",
        )
    blobs = [_compressed(part, what, read, scratch / part.title) for part in parts]
    config = _document("config.v1+json", _config(what, parts, blobs))
    manifest = _document("manifest.v1+json", _manifest(config, blobs))
    for name, content in _heads(what, config, manifest, blobs).items():
        _add(out, name, content, len(content))
    for blob in {blob.digest: blob for blob in (manifest, config, *blobs)}.values():
        _add(out, blob.path, blob.content, blob.size)
    out.write(bytes(1024))


def _config(what: Portable, parts: list[Layer], blobs: list[_Blob]) -> dict[str, Any]:
    machine = str(what.plan.facets.get("cpu", {}).get("architecture", ""))
    created = moment(what.ended)
    labels = {"clew.execution": what.uid, "clew.redacted": ",".join(what.redacted)}
    return {
        "created": created,
        "architecture": _MACHINES.get(machine, machine or "amd64"),
        "os": "linux",
        "config": {
            "User": "{}:{}".format(*what.user),
            "Env": [f"{name}={value}" for name, value in sorted(what.plan.environ.items())],
            "Cmd": list(what.plan.command),
            "WorkingDir": what.plan.cwd,
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


def _heads(what: Portable, config: _Blob, manifest: _Blob, blobs: list[_Blob]) -> dict[str, bytes]:
    """What stands before the blobs, and leads to them."""
    name = reference(what)
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


def _compressed(layer: Layer, what: Portable, read: Read, place: Path) -> _Blob:
    inner, outer = hashlib.sha256(), hashlib.sha256()
    squeeze = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    with open(place, "wb") as file:

        def put(piece: bytes) -> None:
            outer.update(piece)
            file.write(piece)

        for piece in _gathered(archive(layer, what, read)):
            inner.update(piece)
            put(squeeze.compress(piece))
        put(squeeze.flush())
        size = file.tell()
    media = f"{_OCI}.layer.v1.tar+gzip"
    return _Blob(media, place, size, outer.hexdigest(), inner.hexdigest())


def _gathered(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The same bytes in larger pieces: a compressor is slow at small ones."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(held)
            held.clear()
            size = 0
    yield b"".join(held)


def _document(kind: str, value: dict[str, Any]) -> _Blob:
    content = _json(value)
    media = f"{_OCI}.{kind}"
    return _Blob(media, content, len(content), hashlib.sha256(content).hexdigest())


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _add(out: BinaryIO, name: str, content: bytes | Path, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    out.write(header(info))
    if isinstance(content, Path):
        with open(content, "rb") as file:
            shutil.copyfileobj(file, out, _PIECE)
        content.unlink()
        content = b""
    out.write(content + bytes(-size % 512))

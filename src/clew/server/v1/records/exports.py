"""Executions to take away, as downloads: W3C PROV, an RO-Crate, an image, a Dockerfile, a runner,
or a bundle for another project."""

import os
import secrets
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from fastapi import Query, Response
from starlette.responses import StreamingResponse

from clew.api.local.project import LocalProject
from clew.run import spool_directories
from clew.server.v1.dependencies import ProjectDep
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.executions import Id

router = DocumentRouter(tags=["executions"])

Format = Literal["prov-json", "prov-n", "ro-crate", "oci", "dockerfile", "runner", "bundle"]
_NAMES: dict[Format, str] = {
    "prov-json": "{}.prov.json",
    "prov-n": "{}.provn",
    "ro-crate": "{}-ro-crate.tar",
    "oci": "{}-image.tar",
    "dockerfile": "{}-dockerfile.tar",
    "runner": "{}-runner",
    "bundle": "{}.clew.zip",
}
_READ_BYTES = 1 << 18
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.get(
    "/executions/{id}/export",
    response_class=Response,
    responses={200: {"content": _BYTES, "description": "A file; a directory comes as a tar."}},
)
def export_execution(
    project: ProjectDep,
    id: Id,  # noqa: A002
    format: Annotated[Format, Query(description="`bundle` is what `clew pull` reads.")],  # noqa: A002
) -> Response:
    """An execution in a form that other programs, machines or projects read."""
    execution = project.execution(id)
    name = _NAMES[format].format(execution.id)
    file, size = _make(project, str(execution.id), format)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(size),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return StreamingResponse(_read(file), media_type="application/octet-stream", headers=headers)


def _make(project: LocalProject, id_: str, form: Format) -> tuple[BinaryIO, int]:
    """The export as an open file, and its size. It stays readable after its directory is gone."""
    scratch, lock = spool_directories.create_scratch(project.directory, secrets.token_hex(8))
    try:
        path = scratch / _NAMES[form].format("export")
        if form == "bundle":
            project.bundle([id_], path)
        elif form in ("ro-crate", "dockerfile"):
            project.export(id_, format=form, to=scratch / "directory")
            _pack(scratch / "directory", path)
        else:
            project.export(id_, format=form, to=path)
        return path.open("rb"), path.stat().st_size
    finally:
        spool_directories.remove_tree(scratch)
        os.close(lock)


def _pack(directory: Path, path: Path) -> None:
    with tarfile.open(path, "w") as tar:
        tar.add(directory, arcname=".")


def _read(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while data := file.read(_READ_BYTES):
            yield data

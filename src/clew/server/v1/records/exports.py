"""Downloads of executions: W3C PROV, an RO-Crate, an image, a Dockerfile, a runner, a bundle for
another project, or the files that the execution wrote."""

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Literal
from urllib.parse import quote

from fastapi import Query, Response
from starlette.responses import StreamingResponse

from clew.api.local.repeat import write_outputs
from clew.errors import NotFound
from clew.pipelines.runs import run_list
from clew.project_directory import ProjectDirectory
from clew.run.spool_directories import hold_scratch
from clew.server.v1.dependencies import ProjectDep
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.executions import Id
from clew.server.v1.runs.runs import Id as RunId

router = DocumentRouter(tags=["executions"])

Format = Literal["prov-json", "prov-n", "ro-crate", "oci", "dockerfile", "runner", "bundle"]
RunFormat = Literal["bundle", "prov-json", "prov-n"]
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
_MOST_WARNINGS = 20
"""In the header, whose size clients limit."""
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_WARNINGS = {
    "Clew-Warnings": {
        "description": "What the export cannot contain: a percent-encoded JSON list of sentences.",
        "schema": {"type": "string"},
    }
}


@router.get(
    "/executions/{id}/export",
    response_class=Response,
    responses={
        200: {
            "content": _BYTES,
            "description": "A file; a directory comes as a tar.",
            "headers": _WARNINGS,
        }
    },
)
def export_execution(
    project: ProjectDep,
    id: Id,  # noqa: A002
    format: Annotated[Format, Query(description="`bundle` is what `clew pull` reads.")],  # noqa: A002
) -> Response:
    """An execution in a form that other programs, machines or projects read."""
    execution = project.execution(id)
    warnings: list[str] = []

    def write(path: Path) -> None:
        if format == "bundle":
            project.bundle([execution.uid], path)
        else:
            project.export(execution.uid, format=format, to=path, say=warnings.append)

    response = _send(project.directory, _NAMES[format].format(execution.id), write)
    response.headers["Clew-Warnings"] = quote(json.dumps(warnings[:_MOST_WARNINGS]))
    return response


@router.get(
    "/runs/{id}/export",
    response_class=Response,
    responses={200: {"content": _BYTES, "description": "A file."}},
)
def export_run(
    project: ProjectDep,
    id: RunId,  # noqa: A002
    format: RunFormat,  # noqa: A002
) -> Response:
    """All executions of a pipeline run: in a bundle, which `clew pull` reads, or as W3C PROV."""
    run = run_list.get_run(project.graph, id, alive=project.is_alive)
    if not any(task.execution for task in run.tasks):
        raise NotFound(f"{run.name or id} has recorded nothing yet", hint="wait until a task ends")

    def write(path: Path) -> None:
        if format == "bundle":
            project.bundle([run.uid], path)
        else:
            project.export(run.uid, format=format, to=path)

    return _send(project.directory, _NAMES[format].format(run.id), write)


@router.get(
    "/executions/{id}/outputs",
    response_class=Response,
    responses={200: {"content": _BYTES, "description": "A tar."}},
)
def download_outputs(project: ProjectDep, id: Id) -> Response:  # noqa: A002
    """The files that an execution left, as far as their content is stored."""
    execution = project.execution(id)
    return _send(
        project.directory,
        f"{execution.id}-outputs.tar",
        lambda path: write_outputs(project, execution.uid, path),
    )


def _send(project: ProjectDirectory, name: str, write: Callable[[Path], None]) -> StreamingResponse:
    """Let `write` write a file or a directory, and send it. The open file stays readable after its
    directory is removed."""
    with hold_scratch(project) as scratch:
        path = scratch / "result"
        write(path)
        if path.is_dir():
            with tarfile.open(scratch / "tar", "w") as tar:
                tar.add(path, arcname=".")
            path = scratch / "tar"
        file = path.open("rb")
        size = path.stat().st_size
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(size),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return StreamingResponse(_read(file), media_type="application/octet-stream", headers=headers)


def _read(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while data := file.read(_READ_BYTES):
            yield data

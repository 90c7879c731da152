"""The project's named remotes, as `clew remote` lists, adds and removes them."""

import threading
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.api.local.remotes.remote_documents import count_executions
from clew.documents.project.web_settings import RemoteCheck, RemoteInfo, RemoteList
from clew.errors import ClewError, NotAllowed, NotFound, UsageError
from clew.project_directory import is_accepted
from clew.remotes import Remotes, load
from clew.server.server_state import Service
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["settings"])
_CHANGING = threading.Lock()
_Name = Annotated[str, Path(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]


class NewRemote(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$", examples=["lab"])]
    url: Annotated[
        str,
        StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f]*$"),
        Field(
            description="`s3://bucket/prefix`, or an absolute directory of the server's machine.",
            examples=["s3://bucket/paper"],
        ),
    ]
    default: bool = False


@router.get("/remotes")
def list_remotes(service: ServiceDep) -> RemoteList:
    return _describe(load(service.directory.path))


@router.post("/remotes", status_code=201)
def add_remote(service: ServiceDep, remote: NewRemote) -> RemoteList:
    """Add a remote. The first one is the default. Nothing is sent to it."""
    if "://" not in remote.url and not remote.url.startswith("/"):
        raise UsageError(
            f"{remote.url} is neither an absolute path nor an address",
            hint="s3://bucket/prefix, or a directory such as /mnt/shared/paper",
        )
    with _CHANGING:
        remotes = load(service.directory.path)
        remotes.add(remote.name, remote.url, make_default=remote.default)
        remotes.save()
    return _describe(remotes)


@router.delete("/remotes/{name}")
def remove_remote(service: ServiceDep, name: _Name) -> RemoteList:
    """Forget a remote. What is stored there stays."""
    with _CHANGING:
        remotes = load(service.directory.path)
        remotes.remove(name)
        remotes.save()
    return _describe(remotes)


@router.post("/remotes/{name}/check")
def check_remote(service: ServiceDep, name: _Name) -> RemoteCheck:
    """Read the remote, without changing anything: whether it can be reached and what is there. 403
    for a project that came with a repository: its author would learn of the request."""
    url, root = _url(service, name), service.directory.root
    if not is_accepted(service.directory, service.settings):
        raise NotAllowed(
            f"you did not make the project in {root}, so its remotes are not used",
            hint="clew init --trust if you trust it",
        )
    try:
        count = count_executions(url, service.settings.s3, cache=service.directory.cache)
    except ClewError as error:
        return RemoteCheck(ok=False, executions=None, error=error.message, hint=error.hint or None)
    return RemoteCheck(ok=True, executions=count, error=None, hint=None)


def _url(service: Service, name: str) -> str:
    urls = load(service.directory.path).urls
    if name not in urls:
        raise NotFound(f"no remote {name}", hint="list them again")
    return urls[name]


def _describe(remotes: Remotes) -> RemoteList:
    return RemoteList(
        remotes=tuple(
            RemoteInfo(name=name, url=url, default=name == remotes.default)
            for name, url in remotes.urls.items()
        )
    )

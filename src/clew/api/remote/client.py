"""The connection of a remote project: its server, the caller's settings, and queries."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from clew.api.delivery.http_client import Server
from clew.api.executions import Execution
from clew.api.remote import caller_paths
from clew.documents.ids import Uid
from clew.documents.maintenance import ProjectInfo
from clew.errors import Damaged
from clew.settings import Settings

API = "/api/v1"
D = TypeVar("D")


def parse(answer: object, kind: type[D], server: Server) -> D:
    """The answer of a server as a document of this kind."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise Damaged(
            f"{server.url} answers with something else: {error}",
            hint="is it a Clew server of the same version?",
        ) from error


class Client:
    """The modules of `api.remote` take a `Client`, not a `RemoteProject`, which imports them."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.server = server
        self.settings = settings
        self.given_secrets: dict[str, str] = {}
        """Sent with each repeat. The server gets no other variable of this process."""

    @cached_property
    def _project(self) -> ProjectInfo:
        return self.get("project", ProjectInfo)

    @property
    def root(self) -> Path:
        """The directory that contains `.clew/`, on the server."""
        return Path(self._project.root)

    @property
    def uid(self) -> Uid:
        return self._project.uid

    def get(self, path: str, kind: type[D], **query: str) -> D:
        """The document of a route of the API."""
        return parse(self.server.json("GET", f"{API}/{path}", query=query), kind, self.server)

    def post(
        self, path: str, kind: type[D], body: object = None, *, seconds: float = 120.0, **query: str
    ) -> D:
        answer = self.server.json("POST", f"{API}/{path}", body, query=query, seconds=seconds)
        return parse(answer, kind, self.server)

    def query(self, name: str, *, seconds: float = 120.0, **arguments: Any) -> Any:
        path = f"{API}/commands/ask/{name}"
        return self.server.json("POST", path, arguments, seconds=seconds)

    def query_target(self, name: str, target: str, **arguments: Any) -> Any:
        """As `query`, about a target that may be a path of this machine."""
        asker = caller_paths.describe_client(self.settings, target)
        return self.query(name, target=target, asker=asker, **arguments)

    def executions(self) -> list[Execution]:
        return [self.as_execution(document) for document in self.query("executions")]

    def execution(self, id: str) -> Execution:  # noqa: A002
        return self.as_execution(self.query("execution", id=id))

    def as_execution(self, document: dict[str, Any]) -> Execution:
        return Execution.read(document, ask=lambda uid: self.show(uid, detail=True))

    def show(self, id: str, *, detail: bool) -> dict[str, Any]:  # noqa: A002
        document: dict[str, Any] = self.query("show", id=id, detail=detail)
        return document

"""The connection of a remote project: its server, the caller's settings, and queries."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from clew.api.delivery.http_client import Server
from clew.api.executions import Execution, ExecutionList
from clew.api.pipeline_artifacts import is_run_item
from clew.api.remote import caller_paths
from clew.documents.comparisons.differences import ExecutionDiff, PodDiff
from clew.documents.executions.execution_list import Execution as ExecutionDocument
from clew.documents.executions.execution_list import ExecutionPage
from clew.documents.executions.summary import ExecutionSummary
from clew.documents.ids import Uid
from clew.documents.pipelines.runs import Task
from clew.documents.project.maintenance import ProjectInfo
from clew.documents.project.notes import Tags
from clew.errors import Damaged, NotFound
from clew.settings import Settings

API = "/api/v1"
_PAGE = 1000
"""Executions per request: the most that the server answers with."""
D = TypeVar("D")


def parse(answer: object, kind: type[D], server: Server) -> D:
    """The answer of a server as a document of this kind."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise Damaged(
            f"{server.url} sent an unexpected answer: {error}",
            hint="is it a Clew server of the same version?",
        ) from error


def task_path(id: str) -> str:  # noqa: A002
    """The route of a task, by its id `r1/train`."""
    run, _, name = id.partition("/")
    if not name or not id.isprintable():
        raise NotFound(
            f"{id} is not the id of a task: RUN/TASK", hint="clew pipeline show RUN lists tasks"
        )
    return f"tasks/{quote(run, safe='')}/{quote(name)}"


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

    def query(
        self, name: str, kind: type[D], arguments: Mapping[str, object], *, seconds: float = 120.0
    ) -> D:
        """The answer of a private route (`clew.server.v1.cli.queries`)."""
        path = f"{API}/commands/ask/{name}"
        body = msgspec.to_builtins(arguments, str_keys=True)
        return parse(self.server.json("POST", path, body, seconds=seconds), kind, self.server)

    def query_target(self, name: str, kind: type[D], target: str, **arguments: object) -> D:
        """As `query`, about a target that may be a path of this machine."""
        asker = caller_paths.describe_client(self.settings, target)
        return self.query(name, kind, {"target": target, "asker": asker, **arguments})

    def diff(self, a: str, b: str) -> ExecutionDiff | PodDiff:
        answer = self.server.json("GET", f"{API}/diff", query={"a": a, "b": b})
        if isinstance(answer, dict) and "pods" in answer:
            return parse(answer, PodDiff, self.server)
        return parse(answer, ExecutionDiff, self.server)

    def executions(self) -> list[Execution]:
        return [*self.select(workers=True).executions][::-1]

    def select(
        self,
        filters: Iterable[str] = (),
        *,
        since: datetime | None = None,
        limit: int | None = None,
        workers: bool = False,
    ) -> ExecutionList:
        query: list[tuple[str, str]] = [("filter", text) for text in filters]
        query += [("workers", str(workers).lower()), ("limit", str(min(limit or _PAGE, _PAGE)))]
        query += [("since", since.isoformat())] if since else []
        page = self._get_page(query)
        found, total = {document.uid: document for document in page.executions}, page.total or 0
        while page.next is not None and (limit is None or len(found) < limit):
            page = self._get_page([*query, ("after", page.next)])
            before = len(found)
            found |= {document.uid: document for document in page.executions}
            if page.next is not None and len(found) == before:
                raise Damaged(f"{self.server.url} repeats its pages", hint="see its log")
        executions = tuple(map(self.as_execution, [*found.values()][:limit]))
        return ExecutionList(executions=executions, more=total - len(executions))

    def _get_page(self, query: list[tuple[str, str]]) -> ExecutionPage:
        answer = self.server.json("GET", f"{API}/executions", query=query)
        return parse(answer, ExecutionPage, self.server)

    def execution(self, id: str) -> Execution:  # noqa: A002
        return self.as_execution(self.get(self.execution_path(id), ExecutionDocument))

    def execution_path(self, id: str) -> str:  # noqa: A002
        """The route of an execution, also if a task stands for it."""
        if is_run_item(id) and "/" in id:
            found = self.get(task_path(id), Task).execution
            if found is None:
                run = id.partition("/")[0]
                raise NotFound(f"{id} was never run", hint=f"clew pipeline show {run}")
            return f"executions/{found}"
        if not id.isprintable() or not id or "/" in id:  # no execution has such a name
            raise NotFound(f"no execution {id}", hint="clew list")
        return f"executions/{quote(id)}"

    def as_execution(self, document: ExecutionDocument) -> Execution:
        return Execution.of(document, lambda uid: self.show(uid, detail=True))

    def tag(
        self,
        id: str,  # noqa: A002
        add: Iterable[str],
        remove: Iterable[str],
    ) -> list[str]:
        from clew.witness.environment import find_user_name

        asked = {"add": [*add], "remove": [*remove], "agent": find_user_name(os.getuid())}
        return [*self.post(f"{self.execution_path(id)}/tags", Tags, asked).tags]

    def show(self, id: str, *, detail: bool) -> ExecutionSummary:  # noqa: A002
        query = {"detail": str(detail).lower()}
        return self.get(self.execution_path(id), ExecutionSummary, **query)

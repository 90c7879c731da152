"""How a run goes, as it goes: every change that the graph tells of, as server-sent events.

An event's id is the number of the change in the run's own record. So whoever comes back with the
last one it heard (`Last-Event-ID`) hears all that came after, once: also from another server.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from starlette.concurrency import run_in_threadpool

from clew.errors import NotFound
from clew.prov.queries.pipelines.run_changes import list_changes
from clew.prov.queries.pipelines.runs import find_run
from clew.prov.queries.pipelines.tasks import find_last_event_number
from clew.server import run_requests
from clew.server.http.server_sent_events import (
    KEEPALIVE,
    OPENAPI_CONTENT,
    RETRY,
    encode_event,
    stream_response,
)
from clew.server.polling_feed import Feed
from clew.server.service import Service
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.runs import Id

router = APIRouter(tags=["runs"])


class RunFeed(Feed):
    """The changes of one run."""

    def __init__(self, service: Service, uid: str) -> None:
        super().__init__()
        self.events: list[tuple[int, bytes]] = []
        self.state: str | None = None
        self._service = service
        self._uid = uid
        self._seen: object = None

    def poll(self) -> bool:
        with self._service.project() as project:
            seen = (database_version(self._service), project.is_alive(self._uid))
            if seen == self._seen:
                return False
            over = run_requests.is_finished(project, self._uid)
            try:
                run = find_run(project.graph, self._uid)
            except NotFound:
                found = []
            else:
                since = self.events[-1][0] if self.events else 0
                found = list_changes(project.graph, run, since=since)
            if over:
                self.state = run_requests.run_document(project, self._uid, tasks=False)["state"]
        self._seen = seen
        self.events += [
            (one["n"], encode_event(one, kind=one["kind"], id=str(one["n"]))) for one in found
        ]
        self.finished = over
        return bool(found) or over


def database_version(service: Service) -> object:
    """Is another thing after something was written to the graph: as a file says without being
    read; of a database elsewhere nothing is known, but some time has passed."""
    if service.settings.graph:
        return int(time.monotonic() * 2)
    found = []
    for name in (service.folder.graph, f"{service.folder.graph}-wal"):
        try:
            state = os.stat(name)
        except FileNotFoundError:
            found.append((0, 0))
        else:
            found.append((state.st_mtime_ns, state.st_size))
    return tuple(found)


@router.get(
    "/runs/{id}/events",
    response_class=Response,
    responses={
        200: {
            "description": "`run` and `task` for each change, then `end`, when it is over.",
            "content": OPENAPI_CONTENT,
        },
        204: {"description": "It is over, and all was heard."},
    },
)
async def get_run_events(
    service: ServiceDep,
    id: Id,  # noqa: A002
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event that was heard.")
    ] = None,
) -> Response:
    """How a run goes, as it goes, until it is over."""
    heard = int(last_event_id) if last_event_id and _is_number(last_event_id) else None
    uid, done = await run_in_threadpool(_begin, service, id, heard)
    if done:
        return Response(status_code=204)
    return stream_response(_told(service, uid, heard or 0))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def _begin(service: Service, text: str, heard: int | None) -> tuple[str, bool]:
    """The run's uid; and whether nothing is left to be told."""
    with service.project() as project:
        uid = run_requests.find_run_uid(project.graph, text)
        if heard is None or not run_requests.is_finished(project, uid):
            return uid, False
        return uid, find_last_event_number(project.graph, find_run(project.graph, uid).key) <= heard


async def _told(service: Service, uid: str, heard: int) -> AsyncIterator[bytes]:
    yield RETRY
    async with service.feeds.follow(("run", uid), lambda: RunFeed(service, uid)) as feed:
        at = 0
        while True:
            change, over = feed.change(), feed.finished
            events = feed.events[at:]
            at += len(events)
            if fresh := b"".join(one for n, one in events if n > heard):
                yield fresh
            if over:
                yield encode_event(_end(feed), kind="end")
                return
            if service.feeds.ending:
                return
            if not await service.feeds.wait(change):
                yield KEEPALIVE


def _end(feed: RunFeed) -> dict[str, Any]:
    return {"state": feed.state}

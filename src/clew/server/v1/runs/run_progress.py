"""The progress of a run: every change in the graph, as server-sent events.

The id of an event is the number of the change in the record of the run. So a client that reconnects
with `Last-Event-ID`, also to another server, gets all later events exactly once.
"""

import os
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Response
from starlette.concurrency import run_in_threadpool

from clew.documents.ids import Uid
from clew.errors import NotFound
from clew.pipelines.runs import run_list
from clew.prov.queries.pipelines.finished_tasks import find_last_event_number
from clew.prov.queries.pipelines.runs import find_run, list_changes
from clew.server.http.server_sent_events import (
    KEEPALIVE,
    OPENAPI_CONTENT,
    RETRY,
    encode_event,
    stream_response,
)
from clew.server.polling_feed import Feed
from clew.server.server_state import Service
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.runs.runs import Id

router = APIRouter(tags=["runs"])


class RunFeed(Feed):
    """The changes of one run."""

    def __init__(self, service: Service, uid: Uid) -> None:
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
            finished = run_list.is_finished(project.graph, self._uid, alive=project.is_alive)
            try:
                run = find_run(project.graph, self._uid)
            except NotFound:
                changes = []
            else:
                since = self.events[-1][0] if self.events else 0
                changes = list_changes(project.graph, run, since=since)
            if finished:
                self.state = run_list.get_run_summary(
                    project.graph, self._uid, alive=project.is_alive
                ).state
        self._seen = seen
        self.events += [
            (change.n, encode_event(change.as_json(), kind=change.kind, id=str(change.n)))
            for change in changes
        ]
        self.finished = finished
        return bool(changes) or finished


def database_version(service: Service) -> object:
    """A value that differs after every write to the graph. For PostgreSQL, where writes are not
    seen, it changes twice a second. For SQLite it comes from the state of its files, and changes
    every second as well: two writes within one tick of the file system's clock look alike."""
    if service.settings.graph:
        return int(time.monotonic() * 2)
    version: list[object] = [int(time.monotonic())]
    for name in (service.directory.graph, f"{service.directory.graph}-wal"):
        try:
            state = os.stat(name)
        except FileNotFoundError:
            version.append((0, 0))
        else:
            version.append((state.st_mtime_ns, state.st_size))
    return tuple(version)


@router.get(
    "/runs/{id}/events",
    response_class=Response,
    responses={
        200: {
            "description": "`run` and `task` for each change, then `end` when the run has ended.",
            "content": OPENAPI_CONTENT,
        },
        204: {"description": "The run has ended, and the client has all its events."},
    },
)
async def get_run_events(
    service: ServiceDep,
    id: Id,  # noqa: A002
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event received.")
    ] = None,
) -> Response:
    """The progress of a run until it ends."""
    last_received = int(last_event_id) if last_event_id and _is_number(last_event_id) else None
    uid, done = await run_in_threadpool(_find_run, service, id, last_received)
    if done:
        return Response(status_code=204)
    return stream_response(_event_stream(service, uid, last_received or 0))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18


def _find_run(service: Service, text: str, last_received: int | None) -> tuple[Uid, bool]:
    """The uid of the run, and whether the client has all its events."""
    with service.project() as project:
        graph = project.graph
        uid = run_list.find_uid(graph, text)
        if last_received is None or not run_list.is_finished(graph, uid, alive=project.is_alive):
            return uid, False
        return uid, find_last_event_number(graph, find_run(graph, uid).key) <= last_received


async def _event_stream(service: Service, uid: Uid, last_received: int) -> AsyncIterator[bytes]:
    yield RETRY
    async with service.feeds.follow(("run", uid), lambda: RunFeed(service, uid)) as feed:
        at = 0
        while True:
            change, finished = feed.change(), feed.finished
            events = feed.events[at:]
            at += len(events)
            if new := b"".join(event for n, event in events if n > last_received):
                yield new
            if finished:
                yield encode_event({"state": feed.state}, kind="end")
                return
            if service.feeds.ending:
                return
            if not await service.feeds.wait(change):
                yield KEEPALIVE

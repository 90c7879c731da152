"""Changes as server-sent events: the web app refetches the topics that they name.

Each event has the versions of all topics: the first one as soon as the client is connected, then
one whenever a version differs. A client that reconnects, also to another server, compares them with
those it knows.
"""

import time
from collections.abc import AsyncIterator

from fastapi import APIRouter, Response

from clew.remotes import FILE as REMOTES
from clew.server.catalogue.topic_versions import get_versions, hash_version
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
from clew.server.v1.runs.run_progress import database_version

router = APIRouter(tags=["project"])

_MIN_SECONDS = 0.3
"""Between two queries: a recording writes to the database many times a second."""
_LINEAGE_SECONDS = 10
"""Between two versions of `lineage`: agents of a cluster write all the time."""


class ChangeFeed(Feed):
    """The versions of all topics."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.versions: dict[str, str] = {}
        self._service = service
        self._seen: object = None
        self._stored: dict[str, str] = {}
        self._next_query = 0.0
        self._next_lineage = 0.0

    def poll(self) -> bool:
        versions = self._stored_versions() | self._other_versions()
        changed = versions != self.versions
        self.versions = versions
        return changed

    def _stored_versions(self) -> dict[str, str]:
        """The versions in the database, which is queried only after a change."""
        seen = database_version(self._service)
        now = time.monotonic()
        if seen != self._seen and now >= self._next_query:
            with self._service.graph() as graph:
                stored = get_versions(graph)
            if stored["lineage"] != self._stored.get("lineage"):
                if now < self._next_lineage:
                    stored["lineage"] = self._stored["lineage"]
                else:
                    self._next_lineage = now + _LINEAGE_SECONDS
            self._stored = stored
            self._seen = seen
            self._next_query = now + _MIN_SECONDS
        return self._stored

    def _other_versions(self) -> dict[str, str]:
        """Remotes are in a file, and the back end of notebooks has a version of its own."""
        directory, backend = self._service.directory, self._service.backend
        try:
            remotes = (directory.path / REMOTES).stat().st_mtime_ns
        except OSError:
            remotes = 0
        return {
            "settings": hash_version((self._stored.get("settings"), remotes)),
            "workloads": "none" if backend is None else str(backend.version()),
        }


@router.get(
    "/changes",
    response_class=Response,
    responses={
        200: {
            "description": "`{topics: {executions, lineage, runs, pipelines, repeats,"
            " settings, workloads}}`: the versions of all topics, at once and after every change.",
            "content": OPENAPI_CONTENT,
        }
    },
)
async def get_changes(service: ServiceDep) -> Response:
    """Changes, until the client disconnects."""
    return stream_response(_event_stream(service))


async def _event_stream(service: Service) -> AsyncIterator[bytes]:
    yield RETRY
    sent: dict[str, str] = {}
    async with service.feeds.follow("changes", lambda: ChangeFeed(service)) as feed:
        while not service.feeds.ending:
            change, versions = feed.change(), feed.versions
            if versions != sent:
                sent = versions
                yield encode_event({"topics": versions})
            elif not await service.feeds.wait(change):
                yield KEEPALIVE

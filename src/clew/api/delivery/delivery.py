"""Send executions to a server: first the contents that it lacks, then the events in one request.

The server folds the events of an execution in one transaction, and only when it has all the
contents they name: so the execution is complete there, or absent. Contents that have arrived are
not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from clew import log
from clew.api.delivery import unsent
from clew.api.delivery.http_client import Server, connect_server
from clew.api.parameter_types import Progress, ignore_progress
from clew.documents.ids import Uid
from clew.errors import ClewError, NotFound
from clew.store.errors import Unreachable

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.project_directory import ProjectDirectory

_WAIT_SECONDS = 2.0
"""Seconds in all that `exec` waits for a server after the command has ended. What is not sent by
then stays, and the next command continues: packs that have arrived are not sent again."""
_MAX_DIGESTS = 10_000
"""Digests in one request for missing contents."""
_TRIES = 3
"""Attempts, if the server's garbage collection deletes contents between the requests."""


@dataclass
class Delivery:
    """The result of sending all unsent executions."""

    sent: dict[str, str] = field(default_factory=dict)
    """The ids of the executions at the server, by uid."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Why executions are not sent yet, by uid."""

    def log_failures(self, directory: ProjectDirectory) -> None:
        """Log the executions that could not be sent, one line per reason."""
        for why in sorted(set(self.waiting.values())):
            uids = " ".join(uid for uid, reason in self.waiting.items() if reason == why)
            log.write(directory, "warning", f"not sent to the server: {why}: {uids}")


class Uploader:
    """The remote interface of the store for a server."""

    parallel_packs = 1  # chunks are sent before the contents made of them

    def __init__(self, server: Server, transfer: str) -> None:
        self._server = server
        self._transfer = {"for": transfer}

    def find_missing_chunks(self, chunks: Sequence[bytes]) -> set[bytes]:
        return self._missing("chunks", chunks)

    def find_missing_records(self, contents: Sequence[bytes]) -> set[bytes]:
        return self._missing("contents", contents)

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        headers = {"Content-Type": "application/octet-stream"}
        with self._server.open(
            "POST", "/api/v1/content", pack, headers=headers, query=self._transfer
        ) as answer:
            answer.whole()
        return len(pack)

    def fold(self, batch: bytes) -> str:
        """Send the events of one execution; returns its id at the server."""
        import json

        return str(json.loads(self._send_batch("/api/v1/events", batch))["executions"][0]["id"])

    def send_observations(self, batch: bytes) -> None:
        """Send what an agent of a cluster observed."""
        self._send_batch("/api/v1/observations", batch)

    def _send_batch(self, path: str, batch: bytes) -> bytes:
        import zstandard

        headers = {"Content-Type": "application/msgpack", "Content-Encoding": "zstd"}
        body = zstandard.ZstdCompressor(threads=-1).compress(batch)
        with self._server.open(
            "POST", path, body, headers=headers, query=self._transfer, seconds=600
        ) as answer:
            return answer.whole()

    def _missing(self, kind: str, digests: Sequence[bytes]) -> set[bytes]:
        from clew.store.types import format_digest, parse_digest

        missing: set[bytes] = set()
        for at in range(0, len(digests), _MAX_DIGESTS):
            question = {kind: [format_digest(digest) for digest in digests[at : at + _MAX_DIGESTS]]}
            answer: dict[str, Any] = self._server.json(
                "POST", "/api/v1/content/missing", question, query=self._transfer
            )
            missing.update(parse_digest(name) or b"" for name in answer[kind])
        return missing


def deliver(
    project: ProjectState,
    server: Server,
    *,
    own: str | None = None,
    progress: Progress = ignore_progress,
) -> Delivery:
    """Send all unsent executions; what cannot be sent now stays unsent.

    For the execution `own`, wait until another process that is sending it has finished.
    """
    from clew.run.recovery import recover

    directory = project.directory
    found = Delivery()
    try:
        recover(directory, project.settings)
    except ClewError as error:
        found.waiting = dict.fromkeys(unsent.list_unsent(directory), error.message)
        return found
    for uid in unsent.list_unsent(directory):
        try:
            with ExitStack() as claim:
                with server.bounded():
                    wait = server.left(_WAIT_SECONDS) if uid == own else 0
                    place = claim.enter_context(unsent.claim(directory, uid, wait=wait))
                if place is None or project.is_alive(uid):
                    continue
                if (directory.spool / uid).exists():
                    found.waiting[uid] = "its record is not complete yet"
                    continue
                there = _send(project, server, uid, progress)
                if there is not None:
                    found.sent[uid] = there
                place.unlink(missing_ok=True)
        except ClewError as error:
            found.waiting[uid] = error.message
            if isinstance(error, Unreachable):
                found.waiting |= dict.fromkeys(unsent.list_unsent(directory), error.message)
                break
    server.hang_up()
    return found


class OwnDelivery(NamedTuple):
    """The delivery of one execution; the fields are those of `Outcome`."""

    server: str | None = None
    sent: str | None = None
    waiting: str | None = None


def deliver_execution(project: ProjectState, own: str, progress: Progress) -> OwnDelivery:
    """Send the execution `own`, which has just ended, and all unsent ones."""
    try:
        server = connect_server(project.settings, project.directory.token, limit=_WAIT_SECONDS)
        found = deliver(project, server, own=own, progress=progress)
    except KeyboardInterrupt:
        found = Delivery(waiting={own: "interrupted"})
    except ClewError as error:
        found = Delivery(waiting={own: error.message})
    except (
        Exception
    ) as error:  # also a bug in Clew: it must not change the exit status of the command
        found = Delivery(waiting={own: f"{type(error).__name__}: {error}"})
    found.log_failures(project.directory)
    waits = found.waiting.get(own)
    if waits:
        return OwnDelivery(waiting=waits)
    sent = found.sent.get(own)
    if sent is None and own in unsent.list_unsent(project.directory):
        return OwnDelivery(waiting="another process is sending it")
    if sent is None:  # another process has sent it
        with suppress(ClewError):
            sent = server.json("GET", f"/api/v1/executions/{own}")["id"]
    return OwnDelivery(server.url, sent)


def _send(project: ProjectState, server: Server, uid: Uid, progress: Progress) -> str | None:
    """Send one execution; returns its id at the server, or None if it was removed."""
    from clew.prov.events import to_batch
    from clew.prov.export.recorded_events import export_events
    from clew.prov.queries.contents import list_live_digests
    from clew.prov.queries.executions import find_execution
    from clew.store import Store

    graph = project.graph
    uploader = Uploader(server, uid)
    for attempt in range(_TRIES):
        try:
            found = find_execution(graph, uid)
        except NotFound:
            return None
        with Store(project.directory.store, lease="push") as store:
            contents = store.hold(sorted(list_live_digests(graph, found.key)))
            missing = uploader.find_missing_records(contents)
            with store.start_upload(uploader, progress) as sending:
                sending.send([digest for digest in contents if digest in missing])
                sending.finish()
        events = export_events(graph, found)
        find_execution(
            graph, uid
        )  # raises if it was removed meanwhile: then the events are incomplete
        try:
            return uploader.fold(to_batch(events))
        except ClewError as error:
            if error.code != "missing-content" or attempt + 1 == _TRIES:
                raise
    raise AssertionError("the last attempt returns or raises")

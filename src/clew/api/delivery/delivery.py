"""Sending executions to a server: the bytes that it lacks first, then the events, at once.

The server folds the events of an execution in one transaction, and only when it has all the bytes
they name: so the execution is there whole or not at all. What has arrived is not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew import log
from clew.api.delivery import unsent
from clew.api.delivery.http_client import Server, connect_server
from clew.api.project import Progress, ignore_progress
from clew.errors import ClewError, NotFound
from clew.store.errors import Unreachable

if TYPE_CHECKING:
    from clew.api.project_state import ProjectState
    from clew.project_directory import Folder

_PATIENCE = 2.0
"""Seconds in all that `exec` waits for a server after the command has ended. What is not sent by
then stays, and the next command continues: packs that have arrived are not sent again."""
_QUESTIONS = 10_000
"""Digests that are asked about at once."""
_TRIES = 3
"""How often it is begun again, where what has arrived was swept there."""


@dataclass
class Delivery:
    """What came of sending all that waits."""

    sent: dict[str, str] = field(default_factory=dict)
    """By uid, the ids that the executions have there."""
    waiting: dict[str, str] = field(default_factory=dict)
    """By uid, why they are not there yet."""

    def log_failures(self, folder: Folder) -> None:
        """Enter what could not be sent into the project's log, once for each reason."""
        for why in sorted(set(self.waiting.values())):
            uids = " ".join(uid for uid, reason in self.waiting.items() if reason == why)
            log.write(folder, "warning", f"not sent to the server: {why}: {uids}")


class Uploader:
    """A server, as the store sends to it."""

    at_once = 1  # what a content is made of goes before the content

    def __init__(self, server: Server, transfer: str) -> None:
        self._server = server
        self._transfer = {"for": transfer}

    def lacking(self, chunks: Sequence[bytes]) -> set[bytes]:
        return self._missing("chunks", chunks)

    def untold(self, contents: Sequence[bytes]) -> set[bytes]:
        return self._missing("contents", contents)

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        headers = {"Content-Type": "application/octet-stream"}
        with self._server.open(
            "POST", "/api/v1/content", pack, headers=headers, query=self._transfer
        ) as answer:
            answer.whole()
        return len(pack)

    def fold(self, batch: bytes) -> str:
        """The events of one execution; the id that it has there."""
        import json

        import zstandard

        headers = {"Content-Type": "application/msgpack", "Content-Encoding": "zstd"}
        body = zstandard.ZstdCompressor(threads=-1).compress(batch)
        with self._server.open(
            "POST", "/api/v1/events", body, headers=headers, query=self._transfer, seconds=600
        ) as answer:
            return str(json.loads(answer.whole())["executions"][0]["id"])

    def _missing(self, kind: str, digests: Sequence[bytes]) -> set[bytes]:
        from clew.store.types import digest_of, named

        found: set[bytes] = set()
        for at in range(0, len(digests), _QUESTIONS):
            asked = {kind: [named(digest) for digest in digests[at : at + _QUESTIONS]]}
            answer: dict[str, Any] = self._server.json(
                "POST", "/api/v1/content/missing", asked, query=self._transfer
            )
            found.update(digest_of(name) or b"" for name in answer[kind])
        return found


def deliver(
    project: ProjectState,
    server: Server,
    *,
    own: str | None = None,
    progress: Progress = ignore_progress,
) -> Delivery:
    """Send all that waits, the execution `own` even if another process is at it; what cannot be
    sent now stays."""
    from clew.run.recovery import recover

    folder = project.directory
    found = Delivery()
    try:
        recover(folder, project.settings)
    except ClewError as error:
        found.waiting = dict.fromkeys(unsent.list_unsent(folder), error.message)
        return found
    for uid in unsent.list_unsent(folder):
        try:
            with ExitStack() as claim:
                with server.bounded():
                    wait = server.left(_PATIENCE) if uid == own else 0
                    place = claim.enter_context(unsent.claim(folder, uid, wait=wait))
                if place is None or project.is_alive(uid):
                    continue
                if (folder.spool / uid).exists():
                    found.waiting[uid] = "its record is not complete yet"
                    continue
                there = _send(project, server, uid, progress)
                if there is not None:
                    found.sent[uid] = there
                place.unlink(missing_ok=True)
        except ClewError as error:
            found.waiting[uid] = error.message
            if isinstance(error, Unreachable):
                found.waiting |= dict.fromkeys(unsent.list_unsent(folder), error.message)
                break
    server.hang_up()
    return found


def deliver_execution(project: ProjectState, own: str, progress: Progress) -> dict[str, str | None]:
    """Send the execution `own`, which has just ended, with all that waits: what became of it."""
    try:
        server = connect_server(project.settings, project.directory.token, limit=_PATIENCE)
        found = deliver(project, server, own=own, progress=progress)
    except KeyboardInterrupt:
        found = Delivery(waiting={own: "interrupted"})
    except ClewError as error:
        found = Delivery(waiting={own: error.message})
    except Exception as error:  # also a fault of our own: the command's status is its own
        found = Delivery(waiting={own: f"{type(error).__name__}: {error}"})
    found.log_failures(project.directory)
    waits = found.waiting.get(own)
    if waits:
        return {"waiting": waits}
    sent = found.sent.get(own)
    if sent is None and own in unsent.list_unsent(project.directory):
        return {"waiting": "another process is sending it"}
    if sent is None:  # another process has sent it
        with suppress(ClewError):
            sent = server.json("POST", "/api/v1/commands/ask/execution", {"id": own})["id"]
    return {"server": server.url, "sent": sent}


def _send(project: ProjectState, server: Server, uid: str, progress: Progress) -> str | None:
    """Send one; its id there. None: there is no such execution any more."""
    from clew.prov.events import to_batch
    from clew.prov.export.recorded_events import export_events
    from clew.prov.queries.executions import find_execution
    from clew.prov.queries.live_digests import list_live_digests
    from clew.store import Store

    graph = project.graph
    door = Uploader(server, uid)
    for turn in range(_TRIES):
        try:
            found = find_execution(graph, uid)
        except NotFound:
            return None
        with Store(project.directory.store, lease="push") as store:
            contents = store.hold(sorted(list_live_digests(graph, found.key)))
            missing = door.untold(contents)
            with store.sending(door, progress) as sending:
                sending.send([digest for digest in contents if digest in missing])
                sending.finish()
        events = export_events(graph, found)
        find_execution(graph, uid)  # forgotten meanwhile: then this was not all of it
        try:
            return door.fold(to_batch(events))
        except ClewError as error:
            if error.code != "missing-content" or turn + 1 == _TRIES:
                raise
    raise AssertionError("the last turn returns or raises")

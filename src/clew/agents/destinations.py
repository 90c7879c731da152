"""Where observations go: to the server that CLEW_SERVER names, else to the project on this machine.

Both take a batch as a whole or not at all, and first the contents that its events name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from clew.api.delivery.delivery import Uploader
from clew.api.delivery.http_client import Server, connect_server
from clew.api.parameter_types import ignore_progress
from clew.api.project_context import ProjectState
from clew.documents.ids import Digest
from clew.prov.events import AnyEvent, to_batch
from clew.prov.export.recorded_events import list_stored_digests
from clew.settings import Settings
from clew.store import Store

_TRANSFER = "observations"


class Destination(Protocol):
    """Takes observations. Used by one thread."""

    def deliver(self, events: Sequence[AnyEvent], contents: Store) -> None:
        """Add the events, and from `contents` what they name as stored. Idempotent."""

    def close(self) -> None: ...


class ServerDestination:
    """A server, with an access token whose scope is `observe`."""

    def __init__(self, settings: Settings, token: Path | None = None) -> None:
        self._server: Server = connect_server(settings, token)
        self._uploader = Uploader(self._server, _TRANSFER)

    def deliver(self, events: Sequence[AnyEvent], contents: Store) -> None:
        digests = sorted(list_stored_digests(events))
        if digests:
            raw = contents.hold(digests)
            missing = self._uploader.find_missing_records(raw)
            with contents.start_upload(self._uploader, ignore_progress) as upload:
                upload.send([digest for digest in raw if digest in missing])
                upload.finish()
        self._uploader.send_observations(to_batch(list(events)))

    def close(self) -> None:
        self._server.hang_up()


class ProjectDestination:
    """The project on this machine."""

    def __init__(self, project: ProjectState) -> None:
        self._project = project

    def deliver(self, events: Sequence[AnyEvent], contents: Store) -> None:
        with Store(self._project.directory.store, lease="observations") as store:
            for digest in map(Digest, sorted(list_stored_digests(events))):
                if not store.has(digest):
                    store.put_stream(contents.read(digest))
            store.flush()
            self._project.graph.import_observations(events)

    def close(self) -> None:
        self._project.close()

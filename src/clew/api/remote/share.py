"""A server's project as the source or target of a push or pull.

A remote that a user names is one that this machine can reach, with this user's keys; the server
need not. So content that the other side lacks is relayed through this machine, which keeps it only
while it is leased.
"""

from contextlib import AbstractContextManager

import msgspec

from clew import project_directory as directories
from clew.api.delivery.delivery import Uploader
from clew.api.local.remotes.push_pull import Records
from clew.api.remote import content_transfer
from clew.api.remote.client import API, Client, parse
from clew.documents.executions.push_pull import RecordParts
from clew.documents.ids import Digest, Uid
from clew.prov.events import to_batch
from clew.prov.export.note_transfer import PortableNote
from clew.prov.imported_signatures import Signature
from clew.store import Store
from clew.store.remotes import Remote, open_remote
from clew.store.types import format_digest, parse_digest


class RemoteEndpoint:
    """One project, on a server. It neither signs nor keeps signatures; those of what is pulled
    into it are checked here."""

    keeps_signatures = False

    def __init__(self, client: Client) -> None:
        self._client = client
        self.config = client.settings.config
        self._server = client.server
        self._known_parts: dict[str, RecordParts] = {}
        self._lacking: dict[str, list[str]] = {}
        self.executions = client.executions
        self.execution = client.execution

    def remote(self, url: str, *, make: bool = False) -> AbstractContextManager[Remote]:
        here = directories.find_here(self._client.settings)
        cache = here.cache if here else None
        return open_remote(url, self._client.settings.s3, cache=cache, make=make)

    def store(self, lease: str) -> AbstractContextManager[Store]:
        return content_transfer.open_transfer_store(self._client.settings)

    def recover_killed(self) -> None:
        """The server recovers killed executions itself."""

    # -- reading executions

    def source(self, uid: Uid) -> Uid | None:
        return self._parts(uid).source

    def remarks(self, uid: Uid) -> list[PortableNote]:
        return parse(self._parts(uid).notes, list[PortableNote], self._server)

    def contents(self, uid: Uid) -> set[Digest]:
        return set(self._parts(uid).contents)

    def events(self, uid: Uid) -> bytes:
        accept = {"Accept": "application/msgpack"}
        path = f"/api/v1/executions/{uid}/events"
        with self._server.open("GET", path, headers=accept, seconds=600) as answer:
            return answer.whole()

    def signed(self, uid: Uid) -> tuple[bytes, str] | None:
        return None

    def recorded_here(self, uid: Uid) -> bool:
        return False

    def hold(self, store: Store, contents: set[Digest], remote: Remote) -> list[bytes]:
        raw = [found for digest in sorted(contents) if (found := parse_digest(digest))]
        wanted = [
            format_digest(digest)
            for digest in remote.find_missing_chunks(list(remote.find_missing_records(raw)))
        ]
        content_transfer.fetch(self._server, store, wanted)
        return store.hold(sorted(wanted))

    # -- adding executions and notes

    def find_missing_contents(self, uid: Uid, contents: list[str]) -> list[str]:
        raw = [found for digest in contents if (found := parse_digest(digest))]
        missing = self._lacking[uid] = list(
            map(format_digest, Uploader(self._server, uid).find_missing_records(raw))
        )
        return missing

    def import_record(
        self,
        store: Store,
        uid: Uid,
        records: Records,
        noted: list[PortableNote],
        signatures: list[Signature],
    ) -> None:
        content_transfer.send(self._server, store, self._lacking.pop(uid), transfer=uid)
        for events in records:
            Uploader(self._server, uid).fold(to_batch(events))
        self.import_notes(uid, noted)

    def import_notes(self, uid: Uid, noted: list[PortableNote]) -> None:
        if noted:
            body = msgspec.json.encode(noted)
            headers = {"Content-Type": "application/json"}
            with self._server.open(
                "POST", f"{API}/executions/{uid}/notes", body, headers=headers
            ) as answer:
                answer.whole()

    def _parts(self, uid: Uid) -> RecordParts:
        if uid not in self._known_parts:
            self._known_parts[uid] = self._client.get(f"executions/{uid}/record", RecordParts)
        return self._known_parts[uid]

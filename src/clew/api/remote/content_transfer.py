"""Fetch contents from a server, or send them to it: only those that the other side lacks."""

import json
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from clew import project_directory as directories
from clew.api.delivery.delivery import Uploader
from clew.api.delivery.http_client import Server
from clew.api.parameter_types import Progress, ignore_progress
from clew.settings import Settings
from clew.store import Store
from clew.store.remotes.server_fetch import fetch_contents
from clew.store.types import format_digest, parse_digest

_PACK = 128 << 20
"""Most bytes of a pack: the server sends far smaller ones."""


@contextmanager
def open_transfer_store(settings: Settings) -> Iterator[Store]:
    """A store for transferred contents: that of the project here, which may have some of them and
    removes the others with `gc`. Without a writable project, a temporary store."""
    found = directories.find_here(settings)
    if found is not None:
        with Store(found.store) as store:
            if store.writable:
                yield store
                return
    with tempfile.TemporaryDirectory(prefix="clew-") as scratch, Store(Path(scratch)) as store:
        yield store


class _ServerSource:
    """Requests packs from a server, for `fetch_contents`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def records(self, contents: Sequence[bytes]) -> bytes:
        return self._pack("records", contents=contents)

    def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
        return self._pack("chunks", chunks=chunks, contents=alone)

    def _pack(self, name: str, **digests: Sequence[bytes]) -> bytes:
        asked = {kind: [format_digest(digest) for digest in some] for kind, some in digests.items()}
        headers = {"Content-Type": "application/json"}
        body = json.dumps(asked).encode()
        with self._server.open("POST", f"/api/v1/content/{name}", body, headers=headers) as answer:
            return answer.whole(most=_PACK)


def fetch(
    server: Server, store: Store, digests: Iterable[str], progress: Progress = ignore_progress
) -> None:
    """Fetch those of these contents that the store lacks."""
    raw = [found for digest in dict.fromkeys(digests) if (found := parse_digest(digest))]
    fetch_contents(store.pack_import(), _ServerSource(server), raw, progress)


def send(
    server: Server,
    store: Store,
    digests: Iterable[str],
    *,
    transfer: str | None = None,
    progress: Progress = ignore_progress,
) -> str:
    """Send contents that the server lacks; return the id of the transfer, which keeps them."""
    transfer = transfer or secrets.token_hex(16)
    uploader = Uploader(server, transfer)
    contents = store.hold(sorted(set(digests)))
    missing = uploader.find_missing_records(contents)
    with store.start_upload(uploader, progress) as sending:
        sending.send([digest for digest in contents if digest in missing])
        sending.finish()
    return transfer

"""Content that passes through here: from the server, or to it; only what is missing travels."""

from __future__ import annotations

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
"""Bytes of a pack: the server's are far smaller."""


@contextmanager
def open_transfer_store(settings: Settings) -> Iterator[Store]:
    """A store for what passes: that of the project here, which may have some of it already and
    sweeps the rest when it is asked to; where there is none, one that goes with us."""
    found = directories.here(settings)
    if found is not None:
        with Store(found.store) as store:
            if store.writable:
                yield store
                return
    with tempfile.TemporaryDirectory(prefix="clew-") as scratch, Store(Path(scratch)) as store:
        yield store


class _Window:
    """A server, as the store is given content by it."""

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
    """Have these contents in the store."""
    raw = [found for digest in dict.fromkeys(digests) if (found := parse_digest(digest))]
    fetch_contents(store.pack_import(), _Window(server), raw, progress)


def send(
    server: Server,
    store: Store,
    digests: Iterable[str],
    *,
    transfer: str | None = None,
    progress: Progress = ignore_progress,
) -> str:
    """Have contents of this store there; the name of the transfer by which they are kept."""
    name = transfer or secrets.token_hex(16)
    door = Uploader(server, name)
    contents = store.hold(sorted(set(digests)))
    missing = door.without_record(contents)
    with store.start_upload(door, progress) as sending:
        sending.send([digest for digest in contents if digest in missing])
        sending.finish()
    return name

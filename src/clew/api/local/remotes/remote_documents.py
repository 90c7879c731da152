"""The documents that describe executions at a remote; see `docs/formats/remote.md`.

They are untrusted: everyone with write access to the remote can change them.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from clew.documents.ids import Digest, Uid
from clew.errors import Damaged, NotFound, UsageError
from clew.prov.export.note_transfer import PortableNote
from clew.prov.graph import LATEST
from clew.store.remotes import Remote, open_remote
from clew.store.remotes.object_storage import REPAIR, open_storage

MIN_UID_PREFIX = 6
"""A prefix of a uid has at least this many digits."""


class PushedExecution(msgspec.Struct, frozen=True):
    """The fields of a document's execution that are used."""

    id: str
    uid: Uid
    name: str | None
    command: list[str]
    state: str
    status: int | None
    signal: int | None
    started: datetime | None


class Document(msgspec.Struct, frozen=True):
    """The description of an execution at a remote."""

    execution: dict[str, Any]
    """As `clew list --json` shows it where it was pushed."""
    events: Digest
    """The digest of its events, which are a content in the packs."""
    remarks: list[PortableNote]
    inherits: Uid | None = None
    """The uid of the execution that this one inherits reads from."""
    signature: str | None = None
    """An SSH signature of the uid and the digest of the events."""


Offers = dict[Uid, list[Document]]
"""Documents by uid. There are several after pushes by several people, or after a new note."""


def find_offer(offers: Offers, text: str, url: str) -> Uid:
    """The uid of the one execution that `text` names: by uid, name, the pusher's number, or
    `latest`."""
    matches = {Uid(text)} & offers.keys()
    if text == LATEST:
        own = [uid for uid in sort_by_age(offers) if not offers[uid][-1].execution.get("worker")]
        matches = set(own[-1:])
    matches = matches or {
        uid
        for uid, documents in offers.items()
        if any(text in (d.execution.get("id"), d.execution.get("name")) for d in documents)
    }
    if not matches and len(text) >= MIN_UID_PREFIX:
        matches = {uid for uid in offers if uid.startswith(text)}
    if not matches:
        raise NotFound(f"there is no execution {text} at {url}", hint=f"clew pull {url} --list")
    if len(matches) > 1:
        raise UsageError(
            f"{text} is ambiguous: {', '.join(sorted(uid[:8] for uid in matches))}",
            hint=f"name it by its uid; clew pull {url} --list",
        )
    return matches.pop()


def collect_notes(documents: list[Document]) -> list[PortableNote]:
    return [remark for document in documents for remark in document.remarks]


def sort_by_age(offers: Offers) -> list[Uid]:
    def made(uid: Uid) -> tuple[str, Uid]:
        return min(str(document.execution.get("started")) for document in offers[uid]), uid

    return sorted(offers, key=made)


def read_documents(remote: Remote, uids: set[Uid] | None = None) -> tuple[Offers, list[str]]:
    """The intact documents by uid, and the names of the damaged ones."""
    names = [name for name in remote.documents() if uids is None or name[:32] in uids]
    read = remote.read(names)
    offers: Offers = {}
    damaged: list[str] = []
    for name in names:
        document = _decode_document(name, read.get(name))
        if document is None:
            damaged.append(name)
        else:
            offers.setdefault(Uid(name[:32]), []).append(document)
    return offers, damaged


def count_executions(url: str, options: Mapping[str, str], *, cache: Path) -> int | None:
    """How many executions the remote has; None: it is empty, and the first push creates it. The
    errors of `open_remote` say why it cannot be read."""
    storage = open_storage(url, options)
    if not storage.top_level_names() and storage.get("format", most=1024) is None:
        return None
    with open_remote(url, options, cache=cache) as remote:
        return len({name[:32] for name in remote.documents()})


def _decode_document(name: str, data: bytes | None) -> Document | None:
    """None when it is damaged, or not a document of the execution in its name."""
    try:
        document = msgspec.json.decode(data or b"", type=Document)
        pushed = msgspec.convert(document.execution, PushedExecution)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return document if pushed.uid == name[:32] else None


def damaged_error(url: str, names: list[str]) -> Damaged:
    """The error for executions without an intact document."""
    named = ", ".join(f"executions/{name}" for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return Damaged(f"the remote {url} is damaged: {named}{more} cannot be read", hint=REPAIR)


def describe_damaged(name: str) -> str:
    return f"executions/{name} is damaged and was left out"

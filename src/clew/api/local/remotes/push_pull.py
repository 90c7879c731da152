"""Push executions to a remote and pull them from it.

An execution is sent as its contents, its events and a small document that names them. A push
writes the document last; a pull stores the contents first and then imports the events in one
transaction. So on both sides an execution is complete, or not there at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from clew import signing
from clew.api.executions import Execution
from clew.api.local.executions import find_execution, list_executions
from clew.api.local.remotes.remote_documents import (
    Document,
    Offers,
    collect_notes,
    damaged_error,
    describe_damaged,
    find_offer,
    read_documents,
    sort_by_age,
)
from clew.documents.executions.push_pull import Transfer
from clew.documents.ids import Digest, Uid
from clew.errors import Busy, ClewError, Damaged, NotFound, Rejected
from clew.prov.events import AnyEvent, Started, from_batch, to_batch
from clew.prov.export.note_transfer import PortableNote, export_notes, import_notes
from clew.prov.export.recorded_events import export_events, list_stored_digests
from clew.prov.imported_signatures import Signature, add_signatures, list_signatures
from clew.prov.queries.contents import list_live_digests
from clew.prov.queries.execution_record import find_inherited_execution
from clew.prov.queries.executions import ExecutionRef
from clew.prov.queries.executions import find_execution as find
from clew.prov.tables import IMPORTED
from clew.store import Store
from clew.store.remotes import Remote, document_name, open_remote
from clew.store.remotes.download import Download
from clew.store.remotes.object_storage import REPAIR
from clew.store.types import parse_digest

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

Progress = Callable[[int, int], None]
Records = list[list[AnyEvent]]
"""The events of one execution, one list for each of its documents."""


class Endpoint(Protocol):
    """A project as the source of a push or the target of a pull."""

    config: Path
    """The user's configuration directory, which has the keys."""
    keeps_signatures: bool

    def executions(self) -> list[Execution]: ...

    def execution(self, id: str) -> Execution: ...  # noqa: A002

    def remote(self, url: str, *, make: bool = False) -> AbstractContextManager[Remote]: ...

    def store(self, lease: str) -> AbstractContextManager[Store]:
        """The store that contents are sent from or received in."""

    def recover_killed(self) -> None:
        """Fold the records of killed executions into the graph."""

    # -- push

    def source(self, uid: Uid) -> Uid | None:
        """The uid of the execution that this one inherits reads from."""

    def remarks(self, uid: Uid) -> list[PortableNote]: ...

    def contents(self, uid: Uid) -> set[Digest]: ...

    def events(self, uid: Uid) -> bytes:
        """All events as one batch; NotFound if the execution was removed meanwhile."""

    def signed(self, uid: Uid) -> tuple[bytes, str] | None:
        """The events of a pulled execution as they were signed, and the signature."""

    def recorded_here(self, uid: Uid) -> bool: ...

    def hold(self, store: Store, contents: set[Digest], remote: Remote) -> list[bytes]:
        """Protect contents that the remote may lack from garbage collection; returns them."""

    # -- pull

    def find_missing_contents(self, uid: Uid, contents: list[str]) -> list[str]:
        """Those of `contents` that must be fetched."""

    def import_record(
        self,
        store: Store,
        uid: Uid,
        records: Records,
        noted: list[PortableNote],
        signatures: list[Signature],
    ) -> None:
        """Import an execution, whose contents are in the store, in one transaction.

        The signatures are those of the first of the records.
        """

    def import_notes(self, uid: Uid, noted: list[PortableNote]) -> None:
        """Add the notes of others about an execution that is here."""


def push(
    end: Endpoint,
    url: str,
    ids: Iterable[str] | None,
    progress: Progress | None,
    *,
    sign: bool = True,
) -> Transfer:
    """`sign`: sign executions recorded here, if the user has a key."""
    end.recover_killed()
    sign = sign and signing.find_signing_key(end.config) is not None
    executions, remarks = _choose_executions(end, ids)
    with end.store("push") as store, end.remote(url, make=True) as remote:
        if ids is None:
            offers, _ = read_documents(remote, {execution.uid for execution in executions})
            executions = [e for e in executions if not _is_up_to_date(end, e, offers, sign=sign)]
        sent = _send(end, store, remote, executions, progress or (lambda *_: None), sign=sign)
    return Transfer(url=url, executions=tuple(executions), bytes=sent, remarks=tuple(remarks))


def _choose_executions(
    end: Endpoint, ids: Iterable[str] | None
) -> tuple[list[Execution], list[str]]:
    if ids is not None:
        chosen = {found.uid: found for found in map(end.execution, ids)}
        sources = {source for uid in chosen if (source := end.source(uid))}
        for uid in sources - chosen.keys():
            with suppress(NotFound):  # it was removed
                chosen[uid] = end.execution(uid)
        for execution in chosen.values():
            if execution.state == "running":
                raise Busy(f"{execution.id} is still running", hint="push it when it has ended")
        return list(chosen.values()), []
    known = end.executions()
    running = [execution for execution in known if execution.state == "running"]
    remarks = [f"{execution.id} is still running and was left out" for execution in running]
    return [execution for execution in known if execution.state != "running"], remarks


def _is_up_to_date(end: Endpoint, execution: Execution, offers: Offers, *, sign: bool) -> bool:
    """Whether the remote has everything: recorded events never change, but notes do."""
    documents = offers.get(execution.uid)
    if not documents:
        return False
    if sign and end.recorded_here(execution.uid) and not any(d.signature for d in documents):
        return False
    notes = set(collect_notes(documents))
    names = {document.execution.get("name") for document in documents} | {None}
    return execution.name in names and notes.issuperset(end.remarks(execution.uid))


def _send(
    end: Endpoint,
    store: Store,
    remote: Remote,
    executions: list[Execution],
    progress: Progress,
    *,
    sign: bool,
) -> int:
    with store.start_upload(remote, progress) as sending:
        contents: set[Digest] = set()
        for execution in executions:
            contents |= end.contents(execution.uid)
        sending.send(end.hold(store, contents, remote))
        documents: dict[str, tuple[Uid, bytes]] = {}
        for execution in executions:
            uid = execution.uid
            data, signature = end.signed(uid) or (end.events(uid), None)
            events = sending.send_bytes(data)
            if sign and signature is None and end.recorded_here(uid):
                signature = signing.sign(end.config, signing.message(uid, events))
            document = Document(
                execution.as_json(), events, end.remarks(uid), end.source(uid), signature
            )
            encoded = msgspec.json.encode(document, order="sorted")
            documents[document_name(uid, encoded)] = uid, encoded
        sending.finish()
        intact = remote.read(documents.keys() & set(remote.documents()))
        for name, (owner, encoded) in documents.items():
            if name not in intact:
                sending.bytes += remote.publish(owner, encoded)
        return sending.bytes


def list_shared(
    end: Endpoint, url: str, warn: Callable[[str], None] | None
) -> list[dict[str, Any]]:
    here = {execution.uid: execution.id for execution in end.executions()}
    with end.remote(url) as remote:
        offers, damaged = read_documents(remote)
    if warn is not None:
        for name in damaged:
            warn(describe_damaged(name))
    return [{**offers[uid][-1].execution, "here": here.get(uid)} for uid in sort_by_age(offers)]


def pull(end: Endpoint, url: str, ids: Iterable[str] | None, progress: Progress | None) -> Transfer:
    here = {execution.uid for execution in end.executions()}
    with end.store("pull") as store, end.remote(url) as remote:
        offers, damaged = read_documents(remote)
        remarks = list(map(describe_damaged, damaged))
        lost = [name for name in damaged if name[:32] not in offers.keys() | here]
        if ids is None:
            wanted = offers.keys() - here
        else:
            try:
                wanted = {find_offer(offers, text, url) for text in ids}
            except NotFound as error:
                if lost:  # the execution may be one of the damaged documents
                    raise damaged_error(url, lost) from error
                raise
            lost = []
            sources = {document.inherits for uid in wanted for document in offers[uid]}
            wanted |= {uid for uid in sources if uid in offers} - here
        receiving = store.start_download(remote, progress or (lambda *_: None))
        pulled = [uid for uid in sort_by_age(offers) if uid in wanted]
        failures: list[ClewError] = [damaged_error(url, lost)] if lost else []
        for uid in pulled:
            try:
                remarks += _import_execution(end, store, receiving, uid, offers[uid])
            except Rejected as error:  # pull the other executions all the same
                failures.append(error)
            except Damaged as error:
                if store.broken:  # the local store is damaged
                    raise
                text = f"{uid[:8]} was not pulled: {error.message}"
                failures.append(Damaged(text, hint=error.hint))
        for uid in sorted(offers.keys() & here - wanted):
            if noted := collect_notes(offers[uid]):
                end.import_notes(uid, noted)
    if failures:
        raise _join_errors(failures)
    return Transfer(
        url=url,
        executions=tuple(map(end.execution, pulled)),
        bytes=receiving.bytes,
        remarks=tuple(remarks),
    )


def _import_execution(
    end: Endpoint, store: Store, receiving: Download, uid: Uid, documents: list[Document]
) -> Iterator[str]:
    """Import one execution; yields messages for the user.

    Several documents may have different events. If a known signer signed some, only those count;
    otherwise the largest record is imported, and the others must agree with it.
    """
    signatures = [_verify_signature(uid, document) for document in documents if document.signature]
    known = signing.allowed(end.config)
    trusted = {signature.events for signature in signatures if signature.key in known}
    digests = sorted(trusted or {document.events for document in documents})
    read = {digest: _read_events(receiving, uid, digest) for digest in digests}
    digests.sort(key=lambda digest: len(read[digest]), reverse=True)
    kept = end.keeps_signatures and not end.recorded_here(uid)
    signatures = [s for s in signatures if kept and s.events == digests[0]]
    records = [read[digest] for digest in digests]
    named = {name for events in records for name in list_stored_digests(events)}
    named |= {signature.events for signature in signatures}
    contents = end.find_missing_contents(uid, sorted(named))
    receiving.receive(raw for name in contents if (raw := parse_digest(name)))
    end.import_record(store, uid, records, collect_notes(documents), signatures)
    arrived = end.execution(uid)
    for event in records[0]:
        if isinstance(event, Started) and event.activity == uid and event.name:
            if arrived.name != event.name:
                yield f"{arrived.id}: the name {event.name!r} is already used here and was dropped"
            return


def _verify_signature(uid: Uid, document: Document) -> Signature:
    text = document.signature or ""
    try:
        key = signing.verify(text, signing.message(uid, document.events))
    except Rejected as error:
        raise Rejected(f"the record of {uid[:8]}: {error.message}", hint=error.hint) from error
    return Signature(key, document.events, text)


MAX_EVENT_BYTES = 512 << 20
"""The limit for the events of one execution, enough for some millions."""


def _read_events(receiving: Download, uid: Uid, digest: Digest) -> list[AnyEvent]:
    try:
        events = from_batch(receiving.read(parse_digest(digest) or b"", most=MAX_EVENT_BYTES))
    except msgspec.DecodeError:
        events = []
    if not events or any(event.execution != uid for event in events):
        raise Damaged(
            f"the events of {uid} at the remote are not those of this execution", hint=REPAIR
        )
    return events


def _join_errors(failures: list[ClewError]) -> ClewError:
    """One error with the messages of several."""
    first, *others = failures
    if not others:
        return first
    more = f"; and {len(others) - 4} more" if len(others) > 4 else ""
    text = "; ".join(dict.fromkeys(error.message for error in failures[:5]))
    return type(first)(text + more, hint=first.hint)


class LocalEndpoint:
    """The endpoint of a local project."""

    keeps_signatures = True

    def __init__(self, project: ProjectState) -> None:
        self._project = project
        self.config = project.settings.config

    def executions(self) -> list[Execution]:
        return list_executions(self._project)

    def execution(self, id: str) -> Execution:  # noqa: A002
        return find_execution(self._project, id)

    def remote(self, url: str, *, make: bool = False) -> AbstractContextManager[Remote]:
        cache, options = self._project.directory.cache, self._project.settings.s3
        return open_remote(url, options, cache=cache, make=make)

    def store(self, lease: str) -> AbstractContextManager[Store]:
        return Store(self._project.directory.store, lease=lease)

    def recover_killed(self) -> None:
        from clew.run.recovery import recover

        recover(self._project.directory, self._project.settings)

    def source(self, uid: Uid) -> Uid | None:
        return find_inherited_execution(self._project.graph, uid)

    def remarks(self, uid: Uid) -> list[PortableNote]:
        return export_notes(self._project.graph, self._find(uid))

    def contents(self, uid: Uid) -> set[Digest]:
        return list_live_digests(self._project.graph, self._find(uid).key)

    def events(self, uid: Uid) -> bytes:
        batch = to_batch(export_events(self._project.graph, self._find(uid)))
        self._find(uid)  # raises if it was removed meanwhile: then the batch is incomplete
        return batch

    def signed(self, uid: Uid) -> tuple[bytes, str] | None:
        for signature in list_signatures(self._project.graph, uid):
            with self.store("push") as store:
                return store.read_whole(signature.events, most=MAX_EVENT_BYTES), signature.signature
        return None

    def recorded_here(self, uid: Uid) -> bool:
        return self._project.graph.made_elsewhere(uid) not in (None, IMPORTED)

    def hold(self, store: Store, contents: set[Digest], remote: Remote) -> list[bytes]:
        return store.hold(sorted(contents))

    def find_missing_contents(self, uid: Uid, contents: list[str]) -> list[str]:
        return contents

    def import_record(
        self,
        store: Store,
        uid: Uid,
        records: Records,
        noted: list[PortableNote],
        signatures: list[Signature],
    ) -> None:
        graph = self._project.graph

        def add_rest() -> None:
            import_notes(graph, uid, noted)
            add_signatures(graph, uid, signatures, records[0])

        graph.import_events(*records, also=add_rest)

    def import_notes(self, uid: Uid, noted: list[PortableNote]) -> None:
        graph = self._project.graph
        graph.connection.atomically(lambda: import_notes(graph, uid, noted))

    def _find(self, uid: Uid) -> ExecutionRef:
        return find(self._project.graph, uid)

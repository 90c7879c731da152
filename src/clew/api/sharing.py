"""Handing executions over: push to a folder or a bucket, pull from there.

An execution travels as its bytes, its events and a small document that names them. The bytes go
first and the document last; here the bytes are stored before the events are folded, in one
transaction. So on either side an execution is there whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from clew.api.records import Execution, Transfer
from clew.errors import Busy, Damaged, NotFound, UsageError
from clew.prov.events import AnyEvent, Started, from_batch, to_batch
from clew.prov.export.events import contents_of, events_of
from clew.prov.export.remarks import Remark, remarks_of, take
from clew.prov.questions.contents import digests
from clew.prov.questions.executions import find
from clew.prov.questions.inheriting import source_of
from clew.store import Store
from clew.store.records import digest_of
from clew.store.remotes import Remote, document_name, open_remote
from clew.store.remotes.places import REPAIR, spoilt
from clew.store.remotes.receiving import Receiving

if TYPE_CHECKING:
    from clew.api.project import Project

Progress = Callable[[int, int], None]
SHORTEST = 6
"""Digits of a uid that stand for it."""


class Document(msgspec.Struct, frozen=True):
    """What a remote says of an execution; `docs/formats/remote.md`."""

    execution: dict[str, Any]
    """As `clew list --json` shows it where it was pushed."""
    events: str
    """The digest of its events, a content in the packs."""
    remarks: list[Remark]
    inherits: str | None = None
    """The uid of the execution without which it is not whole."""


Offers = dict[str, list[Document]]
"""By uid, what was said of it: by several pushers, or before and after a note was made."""


def push(
    project: Project, url: str, ids: Iterable[str] | None, progress: Progress | None
) -> Transfer:
    from clew.run.recovering import recover

    recover(project._folder, project._settings)
    executions, remarks = _to_push(project, ids)
    with (
        Store(project._folder.store, lease="push") as store,
        _remote(project, url, make=True) as remote,
    ):
        if ids is None:
            offers = _offers(remote, {execution.uid for execution in executions})
            executions = [e for e in executions if not _is_told(project, e, offers)]
        sent = _send(project, store, remote, executions, progress or _silent)
    return Transfer(url=url, executions=tuple(executions), bytes=sent, remarks=tuple(remarks))


def _to_push(project: Project, ids: Iterable[str] | None) -> tuple[list[Execution], list[str]]:
    if ids is not None:
        chosen = {found.uid: found for found in map(project.execution, ids)}
        sources = {source_of(project._graph, uid) for uid in chosen}
        for uid in sources - chosen.keys():
            with suppress(NotFound):  # it was forgotten
                chosen[uid or ""] = project.execution(uid or "")
        for execution in chosen.values():
            if execution.state == "running":
                raise Busy(f"{execution.id} is still running", hint="push it when it has ended")
        return list(chosen.values()), []
    known = project.executions()
    running = [execution for execution in known if execution.state == "running"]
    remarks = [f"{execution.id} is still running, and was left out" for execution in running]
    return [execution for execution in known if execution.state != "running"], remarks


def _is_told(project: Project, execution: Execution, offers: Offers) -> bool:
    """Whether the remote says all there is to say: what was witnessed never changes, notes do."""
    documents = offers.get(execution.uid)
    if not documents:
        return False
    told = set(_remarks(documents))
    names = {document.execution.get("name") for document in documents} | {None}
    own = remarks_of(project._graph, find(project._graph, execution.uid))
    return execution.name in names and told.issuperset(own)


def _send(
    project: Project,
    store: Store,
    remote: Remote,
    executions: list[Execution],
    progress: Progress,
) -> int:
    graph = project._graph
    found = [(execution, find(graph, execution.uid)) for execution in executions]
    with store.sending(remote, progress) as sending:
        contents: set[str] = set()
        for _, one in found:
            contents |= digests(graph, one.key)
        sending.send(store.hold(sorted(contents)))
        documents: list[tuple[str, bytes]] = []
        for execution, one in found:
            events = sending.send_bytes(to_batch(events_of(graph, one)))
            source = source_of(graph, one.uid)
            document = Document(execution.as_json(), events, remarks_of(graph, one), source)
            documents.append((one.uid, msgspec.json.encode(document, order="sorted")))
            find(graph, one.uid)  # forgotten meanwhile: then this was not all of it
        sending.finish()
        there = set(remote.documents())
        for uid, data in documents:
            if document_name(uid, data) not in there:
                sending.bytes += remote.publish(uid, data)
        return sending.bytes


def shared(project: Project, url: str) -> list[dict[str, Any]]:
    here = {execution.uid: execution.id for execution in project.executions()}
    with _remote(project, url) as remote:
        offers = _offers(remote)
    return [{**offers[uid][-1].execution, "here": here.get(uid)} for uid in _oldest_first(offers)]


def pull(
    project: Project, url: str, ids: Iterable[str] | None, progress: Progress | None
) -> Transfer:
    here = {execution.uid for execution in project.executions()}
    remarks: list[str] = []
    with (
        Store(project._folder.store, lease="pull") as store,
        _remote(project, url) as remote,
    ):
        offers = _offers(remote)
        if ids is None:
            wanted = offers.keys() - here
        else:
            wanted = {choose(offers, text, url) for text in ids}
            sources = {document.inherits for uid in wanted for document in offers[uid]}
            wanted |= {uid for uid in sources if uid in offers} - here
        receiving = store.receiving(remote, progress or _silent)
        came = [uid for uid in _oldest_first(offers) if uid in wanted]
        for uid in came:
            remarks += _bring(project, receiving, uid, offers[uid])
        noted = [r for uid in offers.keys() & here - wanted for r in _remarks(offers[uid])]
        if noted:
            project._graph.connection.atomically(lambda: take(project._graph, noted))
    return Transfer(
        url=url,
        executions=tuple(map(project.execution, came)),
        bytes=receiving.bytes,
        remarks=tuple(remarks),
    )


def _bring(
    project: Project, receiving: Receiving, uid: str, documents: list[Document]
) -> Iterator[str]:
    """One execution, whole; what is to be said about it."""
    events: list[AnyEvent] = []
    for digest in sorted({document.events for document in documents}):
        events += _events(receiving, uid, digest)
    receiving.receive(raw for name in contents_of(events) if (raw := digest_of(name)))
    noted = _remarks(documents)
    project._graph.take(events, also=lambda: take(project._graph, noted))
    arrived = project.execution(uid)
    for event in events:
        if isinstance(event, Started) and event.activity == uid and event.name:
            if arrived.name != event.name:
                yield f"{arrived.id}: the name {event.name!r} is taken here, and was dropped"
            return


def _events(receiving: Receiving, uid: str, digest: str) -> list[AnyEvent]:
    try:
        events = from_batch(receiving.read(digest_of(digest) or b""))
    except msgspec.DecodeError:
        events = []
    if not events or any(event.execution != uid for event in events):
        raise Damaged(f"what was pushed as the events of {uid} is something else", hint=REPAIR)
    return events


def choose(offers: Offers, text: str, url: str) -> str:
    """The uid of the one execution that `text` names: by uid, name, or the pusher's number."""
    found = {text} & offers.keys()
    found = found or {
        uid
        for uid, documents in offers.items()
        if any(text in (d.execution.get("id"), d.execution.get("name")) for d in documents)
    }
    if not found and len(text) >= SHORTEST:
        found = {uid for uid in offers if uid.startswith(text)}
    if not found:
        raise NotFound(f"no execution {text} is at {url}", hint=f"clew pull {url} --list")
    if len(found) > 1:
        raise UsageError(
            f"{text} names several: {', '.join(sorted(uid[:8] for uid in found))}",
            hint=f"name it by its uid; clew pull {url} --list",
        )
    return found.pop()


def _remarks(documents: list[Document]) -> list[Remark]:
    return [remark for document in documents for remark in document.remarks]


def _oldest_first(offers: Offers) -> list[str]:
    def made(uid: str) -> tuple[str, str]:
        return min(str(document.execution.get("started")) for document in offers[uid]), uid

    return sorted(offers, key=made)


def _offers(remote: Remote, uids: set[str] | None = None) -> Offers:
    names = [name for name in remote.documents() if uids is None or name[:32] in uids]
    offers: Offers = {}
    for name, data in remote.read(names).items():
        try:
            document = msgspec.json.decode(data, type=Document)
        except msgspec.DecodeError as error:
            raise spoilt(remote.url, f"executions/{name}") from error
        if document.execution.get("uid") != name[:32]:
            raise spoilt(remote.url, f"executions/{name}")
        offers.setdefault(name[:32], []).append(document)
    return offers


@contextmanager
def _remote(project: Project, url: str, *, make: bool = False) -> Iterator[Remote]:
    cache, options = project._folder.cache, project._settings.s3
    with open_remote(url, options, cache=cache, make=make) as remote:
        yield remote


def _silent(done: int, total: int) -> None:
    pass

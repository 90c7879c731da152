"""Lines of a sidecar's access log to events.

Reads of one version are one use, however many requests they took; `summaries` says how many.
"""

import re
from collections.abc import Iterator

import msgspec

from clew.documents.ids import Uid
from clew.prov.events import AnyEvent, Generated, Looked, Used
from clew.witness.object_stores.access_log import MAX_SUM, LogLine
from clew.witness.object_stores.connection_fold import NetworkState, fold_connection
from clew.witness.object_stores.object_events import ObjectEvents
from clew.witness.object_stores.object_fold import ObjectFold
from clew.witness.object_stores.pod_context import PodContainer, PodContext
from clew.witness.object_stores.s3_requests import S3Request, read_request
from clew.witness.object_stores.summaries import MINUTE, AccessKey, Summaries, find_range
from clew.witness.object_stores.uploads import Upload
from clew.witness.object_stores.versions import VersionTable, read_state

_SHA256 = re.compile(r"[0-9a-f]{64}")
_json = msgspec.json.Encoder(order="deterministic")


class TrafficState(msgspec.Struct):
    """What the fold remembers; it is kept with the checkpoint of the log."""

    versions: VersionTable = msgspec.field(default_factory=VersionTable)
    uploads: dict[str, Upload] = {}
    network: NetworkState = msgspec.field(default_factory=NetworkState)
    summaries: Summaries = msgspec.field(default_factory=Summaries)
    described: list[Uid] = []
    """Containers whose beginning was reported."""


def finish_minutes(summaries: Summaries, pod: Uid, at: int) -> Iterator[Looked]:
    """The summaries of the minutes that were over at this time."""
    for key, summary in summaries.take_until(at):
        yield Looked(
            execution=pod,
            n=0,
            at=key.minute * MINUTE,
            activity=key.activity,
            kind="accessed",
            locator=key.locator,
            answer=_json.encode(summary).decode(),
        )


class TrafficFold:
    """The fold of one Pod's log."""

    def __init__(self, context: PodContext, state: TrafficState | None = None) -> None:
        self.state = state or TrafficState()
        self._context = context
        object_events = ObjectEvents(context, self.state.versions)
        self._objects = ObjectFold(object_events, self.state.uploads)

    def add(self, line: LogLine) -> Iterator[AnyEvent]:
        """The events of a line. The lines must be in the order of the log."""
        yield from self.finish_minutes(line.ended)
        by = self._context.find_activity(line.began)
        yield from self._describe(by, line.began)
        if line.kind != "s3":
            yield from fold_connection(line, self._context, by, self.state.network)
            return
        request = read_request(line, self._context.stores)
        if request is None:
            what, why = "a request to S3", "its address is malformed"
            yield self._context.report_gap(by, line.began, what, why)
            return
        for event in self._objects.add(line, request, by):
            yield event
            yield from self._share(by, event)
        self._summarize(line, request, by)

    def finish_minutes(self, at: int) -> Iterator[AnyEvent]:
        """The summaries of the minutes that were over at this time."""
        yield from finish_minutes(self.state.summaries, self._context.uid, at)

    def report_lost(self, at: int, what: str, why: str) -> Iterator[AnyEvent]:
        """A gap of the whole Pod: what the log should have said, and does not."""
        by = self._context.sidecar
        yield from self._describe(by, at)
        yield self._context.report_gap(by, at, what, why)

    def _describe(self, by: PodContainer, at: int) -> Iterator[AnyEvent]:
        """The containers that events are about, before the first one."""
        shared = by.uid == self._context.sidecar.uid
        for one in (by, *(self._context.containers_at(at) if shared else ())):
            if one.uid not in self.state.described:
                self.state.described.append(one.uid)
                yield from self._context.describe(one)

    def _share(self, by: PodContainer, event: AnyEvent) -> Iterator[AnyEvent]:
        """What the sidecar did in place of several containers is passed on to them."""
        if by.uid == self._context.sidecar.uid and isinstance(event, Used | Generated):
            reads = isinstance(event, Used)
            yield from self._context.pass_on(event.at, to_containers=reads)

    def _summarize(self, line: LogLine, request: S3Request, by: PodContainer) -> None:
        state = read_state(line.answer_version or line.version, line.etag)
        key = AccessKey(
            minute=line.ended // MINUTE,
            activity=by.uid,
            locator=request.address.locator,
            operation=request.operation,
            caller=line.caller or line.signed_by or "",
            source=state.source or "",
        )
        summary = self.state.summaries.find(key)
        summary.requests += 1
        summary.failed += line.failed or (line.status or 500) >= 400
        summary.received = min(summary.received + line.received, MAX_SUM)
        summary.sent = min(summary.sent + line.sent, MAX_SUM)
        if request.operation == "put" and _SHA256.fullmatch(line.sha256 or ""):
            summary.sha256 = line.sha256 or ""
        if read := find_range(line):
            summary.add_range(*read)

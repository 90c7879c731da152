"""Requests to an object store to events about its objects.

A read counts from the first byte of its answer, and a write at the last byte of its request: what a
Pod wrote can then only contain what it had read, and every reader of a write read it later, on one
clock. A copy is both, and the parts of an upload become one version when it is completed.
"""

from collections.abc import Generator, Iterator

from clew.prov.events import AnyEvent, Invalidated
from clew.witness.object_stores.access_log import LogLine
from clew.witness.object_stores.object_events import ObjectEvents
from clew.witness.object_stores.pod_context import PodContainer
from clew.witness.object_stores.s3_requests import (
    ObjectAddress,
    S3Request,
    object_locator,
    read_copy_source,
)
from clew.witness.object_stores.uploads import Part, Upload
from clew.witness.object_stores.versions import KnownVersion, ObjectState, read_state

MAX_UPLOADS = 100
_MAX_ANSWER = 64  # what an answer of a look of kind `present` may have
_GONE = (403, 404, 405, 410)
"""Answers to a read that say that there is nothing, or nothing for this caller."""
_KEYS_IN_BODY = "the request has the names of the objects in its body"


class ObjectFold:
    def __init__(self, events: ObjectEvents, uploads: dict[str, Upload]) -> None:
        """`uploads`: those that were begun, by name; they are kept up to date here."""
        self._events = events
        self._context = events.context
        self._uploads = uploads

    def add(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        handle = _HANDLERS.get(request.operation)
        if handle is not None:
            yield from handle(self, line, request, by)

    def _read(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if line.status in _GONE or line.status == 304:
            yield from self._look(line, request, by)
        elif line.status in (200, 206):
            found = read_state(line.answer_version or line.version, line.etag)
            yield from self._events.use(
                request.address.locator, found, line.answered, by, _size(line)
            )

    def _look(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        """It learnt whether there is an object, and which."""
        status = line.status or 0
        if status in _GONE:
            kind, answer = "absent", str(status)
        elif status in (200, 206, 304, 412):
            state = read_state(line.answer_version, line.etag)
            kind, answer = "present", (state.source or "")[:_MAX_ANSWER]
            yield from self._events.learn(
                request.address.locator, state, line.answered, _size(line)
            )
        else:
            return
        yield self._events.look(by, kind, request.address.locator, answer, line.answered)

    def _list(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        place = object_locator(request.address.bucket, (line.prefix or "").encode())
        if line.status in _GONE:
            yield self._events.look(by, "absent", place, str(line.status), line.answered)
        elif line.status == 200:
            yield self._events.look(by, "listing", place, "", line.answered)

    def _write(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if not self._is_written(line):
            yield from self._report_unknown(line, request, by)
            return
        size = _number(line.decoded_length)
        state = read_state(line.answer_version, line.etag)
        yield from self._events.generate(
            request.address.locator, state, line, by, line.received if size is None else size
        )

    def _copy(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if not self._is_written(line):
            yield from self._report_unknown(line, request, by)
            return
        known = yield from self._use_source(line, by)
        # A copy has the ETag of its source, unless that was made of parts.
        plain = known if known and "-" not in (known.state.etag or "-") else None
        etag = line.etag or (plain.state.etag if plain else None)
        state, size = read_state(line.answer_version, etag), known.size if known else None
        yield from self._events.generate(request.address.locator, state, line, by, size)

    def _use_source(
        self, line: LogLine, by: PodContainer
    ) -> Generator[AnyEvent, None, KnownVersion | None]:
        """The use of what was copied; the value is the version, if it is known."""
        source = read_copy_source(line.copy_source or "")
        if source is None:
            why = "its address is malformed"
            yield self._context.report_gap(by, line.began, "the source of a copy", why)
            return None
        state = read_state(line.copy_version, None)
        known = self._find_copied(source, state)
        found = known.state if known else state
        yield from self._events.use(source.locator, found, line.request_read, by, None)
        return known

    def _delete(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if line.status not in (200, 204):
            if line.failed or (line.status or 500) >= 500:
                yield from self._report_unknown(line, request, by)
            return
        place = request.address.locator
        state = read_state(line.version, None)
        known = self._events.versions.find(place, state)
        if known is None and state.source is None:
            known = self._events.versions.latest(place)
        if known is None:
            known = self._events.versions.add(place, self._context.uid, state, at=line.request_read)
        yield Invalidated(
            execution=self._context.uid,
            n=0,
            at=line.request_read,
            activity=by.uid,
            version=known.version,
        )

    def _put_part(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if line.status != 200:
            return
        if request.operation == "copy-part":
            yield from self._use_source(line, by)
        number, size = _number(line.part) or 0, _number(line.decoded_length)
        part = Part((line.etag or "").strip('"'), line.received if size is None else size)
        name = _upload_name(line, request)
        upload = self._uploads.pop(name, None) or Upload()
        if not upload.add(number, part):
            yield self._events.context.report_gap(
                by, line.began, "a part of an upload", "it has no number of one"
            )
        if len(self._uploads) >= MAX_UPLOADS:
            del self._uploads[next(iter(self._uploads))]
        self._uploads[name] = upload

    def _complete(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if not self._is_written(line):
            yield from self._report_unknown(line, request, by)
            return
        upload = self._uploads.pop(_upload_name(line, request), None) or Upload()
        state = read_state(line.answer_version, line.etag or upload.etag)
        yield from self._events.generate(request.address.locator, state, line, by, upload.size)

    def _abort(self, line: LogLine, request: S3Request, _by: PodContainer) -> Iterator[AnyEvent]:
        if line.status in (200, 204):
            self._uploads.pop(_upload_name(line, request), None)
        yield from ()

    def _unseen(self, line: LogLine, request: S3Request, by: PodContainer) -> Iterator[AnyEvent]:
        if line.status is not None and line.status < 300:
            many = request.operation == "delete-many"
            what = "which objects were deleted" if many else "which object was written"
            yield self._events.context.report_gap(
                by, line.began, what, _KEYS_IN_BODY, request.address.locator
            )

    def _is_written(self, line: LogLine) -> bool:
        return line.status in (200, 201) and (not line.failed or bool(line.etag))

    def _report_unknown(
        self, line: LogLine, request: S3Request, by: PodContainer
    ) -> Iterator[AnyEvent]:
        """A write whose answer did not arrive may have happened."""
        if line.failed or (line.status or 500) >= 500:
            why = f"the answer was {line.status}" if line.status else "the answer did not arrive"
            what = "whether an object was changed"
            place = request.address.locator
            yield self._context.report_gap(by, line.began, what, why, place)

    def _find_copied(self, source: ObjectAddress, state: ObjectState) -> KnownVersion | None:
        """The version that was copied, if it is known; else the latest that was met, unless the
        server named another."""
        versions = self._events.versions
        if state.source is not None:
            return versions.find(source.locator, state)
        return versions.latest(source.locator)


def _size(line: LogLine) -> int | None:
    """The size of the whole object, of a part of which an answer has the bytes."""
    total = (line.content_range or "").rpartition("/")[2]
    return _number(total if line.content_range else line.length)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _upload_name(line: LogLine, request: S3Request) -> str:
    return f"{request.address.locator}\0{line.upload}"


_HANDLERS = {
    "get": ObjectFold._read,
    "select": ObjectFold._read,
    "head": ObjectFold._look,
    "properties": ObjectFold._look,
    "list": ObjectFold._list,
    "put": ObjectFold._write,
    "copy": ObjectFold._copy,
    "delete": ObjectFold._delete,
    "put-part": ObjectFold._put_part,
    "copy-part": ObjectFold._put_part,
    "complete-upload": ObjectFold._complete,
    "abort-upload": ObjectFold._abort,
    "delete-many": ObjectFold._unseen,
    "post-form": ObjectFold._unseen,
}

"""What of an attempt is kept in the project's store: its output, and small artifacts.

So they can be shown, compared and restored like those of a task on this machine, also when the
bucket has forgotten them. Of larger artifacts the record has the digest, and the bucket the bytes.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from clew.errors import ClewError
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import ArtifactStore, StoredFile
from clew.pipelines.pods.conversion_process import build_traced_events
from clew.pipelines.pods.execution_events import PodRecord, build_events
from clew.pipelines.pods.witnessed_processes import NotWitnessed, TracedTask
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.run import execution_events
from clew.run.stdio.streams import StreamCapture
from clew.store import Store

MAX_FILE = 16 << 20
"""Bytes of an artifact's file that is kept."""
_MAX_TRACE = 128 << 20
"""Bytes of a compressed trace."""
MAX_FILES = 100
"""Files that are kept of one attempt."""
_PIECE = 1 << 20


def keep_and_build_events(
    record: PodRecord,
    log: Path,
    store: Store,
    *,
    redactor: Redactor,
    limit: int,
    artifacts: ArtifactStore,
    traced: TracedTask | None,
) -> list[AnyEvent]:
    """The events of an attempt, once the content that they name is stored. `log`: its output;
    `limit`: the bytes of it that are kept; `traced`: its processes are to be recorded."""
    stored = set(_keep_files(record.outputs, store, artifacts))
    events = _build_traced_events(record, traced, stored, artifacts)
    if events is None:
        events = build_events(record, stored)
    kept = log.with_suffix(".kept")
    capture = StreamCapture(kept, redactor=redactor, limit=limit)
    try:
        with log.open("rb") as file:
            while piece := file.read(_PIECE):
                capture.feed(piece)
        capture.finish()
        streams = {"stdout": capture}
        events += execution_events.build_stream_events(record.execution, store, streams)
        store.flush()
    finally:
        kept.unlink(missing_ok=True)
    return events


def _keep_files(
    files: Iterable[StoredFile], store: Store, artifacts: ArtifactStore
) -> Iterator[str]:
    """Store the small ones; yields their digests."""
    small = [file for file in files if file.size <= MAX_FILE][:MAX_FILES]
    for file in small:
        with suppress(ClewError):  # it is gone, or changed meanwhile
            data = artifacts.read(file.url, most=MAX_FILE)
            if data is not None and store.put_bytes(data).digest == file.digest:
                yield file.digest


def _build_traced_events(
    record: PodRecord,
    traced: TracedTask | None,
    stored: Iterable[str],
    artifacts: ArtifactStore,
) -> list[AnyEvent] | None:
    """With what its processes did; None if that is not known, and `record` then says why."""
    if traced is None:
        record.unseen = "they are not to be"
        return None
    try:
        data = artifacts.read(f"{traced.place}/{task_documents.TRACE}", most=_MAX_TRACE)
        if data is None:
            return None
        trace = task_documents.decode_trace(data)
        record.inputs = record.inputs or trace.header.inputs
        if trace.header.why_not:
            record.unseen = trace.header.why_not
            return None
        return build_traced_events(traced, trace, record, stored)
    except NotWitnessed as why:
        record.unseen = str(why)
    except (ClewError, ValueError) as error:
        record.unseen = f"its trace cannot be read: {error}"
    return None

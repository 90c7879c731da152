"""Events that the recorder itself adds to an execution: its start, its output and its end.

The witness builds all others. `prov.event_numbers` defines the numbers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from clew.documents.ids import Uid
from clew.errors import ClewError, RecordingFailed
from clew.prov.event_numbers import ENDED, FIRST_STREAM, LOST_CONTENT, LOST_TRACE, STARTED
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Gap,
    Started,
    Version,
)
from clew.prov.locators import decode_text, stream_locator
from clew.redaction import Redactor
from clew.run import record_errors
from clew.run.launch.execution_host import ExecutionHost
from clew.run.launch.pins import UNPINNED, Pins
from clew.run.stdio.streams import StreamCapture, Streams
from clew.store import Store
from clew.witness import environment

if TYPE_CHECKING:
    from clew.witness.syscalls.trace_conversion import ConvertedTrace
    from clew.witness.syscalls.trace_state import TraceState


class ExecutionStart(msgspec.Struct, frozen=True):
    """The `started` event of an execution, and its recorded variables."""

    event: Started
    variables: Mapping[str, str]
    sealed: Mapping[str, str]


def build_start(
    uid: Uid,
    host: ExecutionHost,
    redactor: Redactor,
    command: Sequence[str],
    *,
    name: str | None = None,
    pins: Pins = UNPINNED,
) -> ExecutionStart:
    facets = host.facets(redactor)
    variables: dict[str, str] = facets.pop("variables", {})
    facets.pop("pinned", None)  # of the repeated execution
    if pins != UNPINNED:
        facets["pinned"] = pins.facet()
    sealed = redactor.seals(
        {decode_text(n): decode_text(value) for n, value in host.environ.items()}
    )
    facets.pop("sealed", None)
    facets |= {"sealed": sealed} if sealed else {}
    arguments = redactor.arguments([decode_text(word) for word in command])
    facets.pop("argument_secrets", None)
    if arguments.secrets:
        names = {name for masks in arguments.secrets.values() for name in masks if name}
        facets["argument_secrets"] = arguments.secrets
        facets["redacted"] = sorted(names.union(facets.get("redacted", ())))
    derivation = host.derivation
    if derivation is not None:
        facets |= {"kind": derivation.kind, "collection": derivation.collection}
    started = Started(
        execution=uid,
        n=STARTED,
        at=time.time_ns(),
        activity=uid,
        kind="execution",
        parent=derivation.parent if derivation else None,
        agent=environment.find_user_name(os.getuid()),
        command=arguments.words,
        cwd=decode_text(os.fspath(host.cwd)),
        name=name,
        environment=dict(variables),
        facets=facets,
    )
    return ExecutionStart(started, variables, sealed)


def build_stream_events(
    uid: Uid, store: Store, kept: Mapping[str, StreamCapture], *, keep: bool = True
) -> list[AnyEvent]:
    """Content events for the captured standard streams."""
    events: list[AnyEvent] = []
    for number, (name, capture) in enumerate(kept.items()):
        if not capture.size:
            continue
        stored = False
        if keep and capture.whole:
            try:
                store.put_file(os.fsencode(capture.path))
                stored = True
            except ClewError:
                stored = False
        events.append(
            Content(
                execution=uid,
                n=FIRST_STREAM + number,
                at=time.time_ns(),
                version=Version(stream_locator(uid, name), uid, 1),
                digest=capture.digest,
                size=capture.size,
                mode=0o100600,
                mtime=time.time_ns(),
                stored=stored,
            )
        )
    return events


def build_record(
    uid: Uid,
    trace: ConvertedTrace,
    store: Store,
    captured: Streams,
    failure: Exception | None,
    *,
    status: int,
    complete: bool,
    packages: Callable[[], dict[str, Any]],
    label: str | None,
    store_content: bool,
) -> tuple[list[AnyEvent], ClewError | None]:
    """All events after the start; the last is `Ended`. The store has the bytes they name.
    The warning says what is missing in the record: because of `failure`, or
    since the trace is not `complete`."""
    events = [
        *label_process(trace.events, trace.first, label),
        *build_stream_events(uid, store, captured.kept, keep=store_content),
    ]
    warning = record_errors.as_clew_error(failure) if failure else None
    try:
        store.flush()
    except ClewError as error:
        warning = warning or error
    if warning is not None:
        why = f"some content could not be stored: {warning.message}"
        lost = build_gap(uid, LOST_CONTENT, "content", why)
        events = [*record_errors.correct_stored(events, store), lost]
    if not complete:
        why = "the trace ends before the command: was the disk full?"
        events.append(build_gap(uid, LOST_TRACE, "trace", why))
        hint = "free some space, then run the command again"
        warning = warning or RecordingFailed(why, hint=hint)
    facets = {"packages": packages(), "new_bytes": store.added, **captured.facets()}
    events.append(build_end(uid, trace.state, status, trace.bytes, facets))
    return events, warning


def build_gap(uid: Uid, n: int, what: str, why: str) -> Gap:
    return Gap(execution=uid, n=n, at=time.time_ns(), activity=uid, what=what, why=why)


def build_end(
    uid: Uid,
    state: TraceState,
    status: int,
    size: int,
    facets: Mapping[str, Any],
    *,
    at: int | None = None,
) -> Ended:
    """`size` is that of all named content; `facets` are added to the totals; `at` defaults to
    now."""
    root = state.root_exit()
    inputs, outputs = state.totals()
    return Ended(
        execution=uid,
        n=ENDED,
        at=at or time.time_ns(),
        activity=uid,
        status=status if not (root and root.signal) else None,
        signal=root.signal or None if root else None,
        facets={
            "processes": len(state.processes),
            "inputs": inputs,
            "outputs": outputs,
            "bytes": size,
            **facets,
        },
    )


def label_process(events: Iterable[AnyEvent], process: Uid, label: str | None) -> list[AnyEvent]:
    """The same events, with `label` as the name of this process."""
    if label is None:
        return list(events)
    return [
        msgspec.structs.replace(event, name=label)
        if isinstance(event, Started) and event.activity == process
        else event
        for event in events
    ]

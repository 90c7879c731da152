"""The record of a cell: an execution with the files that it read and wrote, its variables and what
it showed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from clew.documents.ids import Uid
from clew.notebooks.messages import Begin, End
from clew.prov.event_numbers import CELL, ENDED, STARTED
from clew.prov.events import AnyEvent, Content, Ended, Started, Version
from clew.prov.locators import stream_locator
from clew.redaction import Redactor
from clew.run import execution_events
from clew.run.execution_events import ExecutionStart
from clew.run.session.trace_steps import TraceStep
from clew.store import Store
from clew.witness.syscalls.trace_conversion import ConvertedTrace

CELL_PROGRAM = "cell"
"""Cells are found by their keys like programs by their commands; this is the program."""
VARIABLES, OUTPUTS = "variables", "outputs"
_MAX_CODE = 400
"""Characters of the code that lists show."""
_MAX_WHY = 200
"""Characters of the reason why a cell cannot be reused."""
_PIECE = 1 << 20


def build_cell_events(
    kernel: ExecutionStart,
    begin: Begin,
    end: End,
    key: str,
    converted: ConvertedTrace,
    step: TraceStep,
    store: Store,
    spool: Path,
    redactor: Redactor,
) -> list[AnyEvent]:
    """All events of a cell that has run. Its variables and outputs go into the store."""
    uid = Uid(begin.cell)
    at, until = step.begin.at, step.end.at if step.end else time.time_ns()
    code = redactor.arguments([begin.code]).words[0][:_MAX_CODE]
    status = 0 if end.status == "ok" else 1
    facets = {name: value for name, value in kernel.event.facets.items() if name != "streams"}
    started = msgspec.structs.replace(
        kernel.event,
        execution=uid,
        activity=uid,
        n=STARTED,
        at=at,
        command=(code,),
        facets={**facets, "kernel": kernel.event.execution},
    )
    unsaved = end.document.unsaved
    if step.disturbed:
        unsaved = unsaved or "a process of another cell ran at the same time"
    if unsaved is None and _holds_secret(uid, spool, redactor):
        unsaved = "it has or shows the value of a secret variable, which is not stored"
    document = {
        **msgspec.to_builtins(end.document),
        "needs": _mask(end.document.needs, redactor),
        "writes": _mask(end.document.writes, redactor),
        "unsaved": redactor.text(unsaved)[:_MAX_WHY] if unsaved else None,
        "replaced": [path.decode(errors="replace") for path in step.replaced],
        "reads": _mask(begin.reads, redactor),
        "before": begin.process,
        "seconds": end.seconds,
    }
    cell = Uid(f"{uid}/cell")
    contents = _store_contents(uid, store, spool, until, saved=unsaved is None)
    ended = execution_events.build_end(
        uid, converted.state, status, converted.bytes, {"cell": document}, at=until
    )
    return [
        started,
        *execution_events.label_process(converted.events, converted.first, "cell"),
        *contents,
        Started(
            execution=uid,
            activity=cell,
            n=CELL,
            at=until,
            kind="cell",
            parent=uid,
            exe=CELL_PROGRAM,
            command=(key,),
            facets={"begun": {}},
        ),
        Ended(execution=uid, activity=cell, n=CELL + 1, at=until, status=status),
        msgspec.structs.replace(ended, n=ENDED, status=status, signal=None),
    ]


def _mask(versions: dict[str, str], redactor: Redactor) -> dict[str, str]:
    """The version of what cannot be saved says why, in words of the user's own classes."""
    return {name: redactor.text(version) for name, version in versions.items()}


def _holds_secret(uid: Uid, spool: Path, redactor: Redactor) -> bool:
    return any(
        redactor.finds_secret(_read_pieces(path))
        for name in (VARIABLES, OUTPUTS)
        if (path := spool / f"{uid}.{name}").exists()
    )


def _read_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _store_contents(uid: Uid, store: Store, spool: Path, at: int, *, saved: bool) -> list[AnyEvent]:
    events: list[AnyEvent] = []
    for n, name in ((CELL + 2, VARIABLES), (CELL + 3, OUTPUTS)):
        path = spool / f"{uid}.{name}"
        if saved and path.exists():
            stored = store.put_file(os.fsencode(path))
            events.append(
                Content(
                    execution=uid,
                    n=n,
                    at=at,
                    version=Version(stream_locator(uid, name), uid, 1),
                    digest=stored.digest,
                    size=stored.size,
                    mode=0o100600,
                    mtime=at,
                )
            )
        path.unlink(missing_ok=True)
    return events


def cell_facet(facets: dict[str, Any]) -> dict[str, Any] | None:
    """What the record of an execution says about its cell; None if it is none."""
    found = facets.get("cell")
    return found if isinstance(found, dict) else None

"""What there is to fold of a session: of its command, and of each task of work that it forked.

What the command itself read is told once, and not again for each task: a task says that it
`inherits` from it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from clew.packages.owners import Packages
from clew.project_directory import Folder, own
from clew.prov.event_kinds import FORKED, LOST_CONTENT
from clew.prov.events import AnyEvent, Informed
from clew.redaction import Redactor
from clew.run import execution_events, record_errors
from clew.run.execution_events import ExecutionStart
from clew.run.launch.execution_host import LocalHost
from clew.run.launch.input_snapshot import InputSnapshot
from clew.run.session.forked_task import ForkedTask, trace_as_command
from clew.run.session.trace_branches import TraceBranch, TraceSplitter
from clew.run.stdio.streams import Streams
from clew.settings import Settings
from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_conversion import TraceConverter
from clew.witness.syscalls.trace_format import Exec, Held

Names = Mapping[bytes, str]
"""Streams, as the tracer sees them, and what they are."""


class SessionEvents:
    """Of one session; what it names is put into the store."""

    def __init__(
        self,
        folder: Folder,
        settings: Settings,
        host: LocalHost,
        redactor: Redactor,
        beginning: ExecutionStart,
        contents: ContentCapture,
        store: Store,
        branches: TraceSplitter,
        name: str,
    ) -> None:
        """`name`: what to call the command in lineage."""
        self.input_snapshot: InputSnapshot | None = None
        """What the command read, once that was told."""
        self._uid = beginning.event.execution
        self._redactor = redactor
        self._beginning = beginning
        self._store = store
        self._branches = branches
        self._name = name
        self._packages = Packages(settings.owners)
        self._builder = TraceConverter(
            machine=host.machine,
            boot=host.boot,
            variables=beginning.variables,
            sealed=beginning.sealed,
            redactor=redactor,
            ignore=own(folder, settings),
            contents=contents,
            owners=self._packages.owners,
        )

    def of_command(self, names: Names) -> list[AnyEvent]:
        """Its beginning, and what it did so far."""
        own, self._branches.own = self._branches.own, []
        trace = self._branches.trace(own)
        self._exec = next(record for record in trace if isinstance(record, Exec))
        self._openings = next(record for record in trace if isinstance(record, Held))
        self.input_snapshot = InputSnapshot.of(trace)
        built = self._builder.build(self._uid, trace, names)
        self._used = set(built.owners.values())
        self._ending = execution_events.build_end(self._uid, built.story, 0, 0, {})
        self._itself = built.first
        return [
            self._beginning.event,
            *execution_events.label_process(built.events, built.first, self._name),
        ]

    def of_task(
        self, task: ForkedTask, branch: TraceBranch, failure: Exception | None
    ) -> list[AnyEvent]:
        """All of a task that is over; `failure`: why not all it read was taken in."""
        started = msgspec.structs.replace(
            self._beginning.event,
            execution=task.uid,
            activity=task.uid,
            at=task.began,
            command=self._redactor.arguments(task.command).words,
            facets={**self._beginning.event.facets, "inherits": self._uid},
        )
        before = self._store.added
        told = trace_as_command(task, branch, self._exec, self._openings)
        names, printed = task.output.names, {"stdout": task.output.capture}
        built = self._builder.build(task.uid, self._branches.trace(told), names)
        events = [
            *built.events,
            *execution_events.build_stream_events(task.uid, self._store, printed),
        ]
        facets: dict[str, Any] = {
            "packages": self._packages.facet(set(built.owners.values())),
            "new_bytes": self._store.added - before,
            **task.output.facets(),
        }
        if failure is not None:
            why = record_errors.as_clew_error(failure).message
            events.append(
                execution_events.build_gap(
                    task.uid, LOST_CONTENT, "content", f"not all was stored: {why}"
                )
            )
        first = built.story.processes[branch.spawn.image].uid
        events = execution_events.label_process(events, first, task.name)
        forked = Informed(
            execution=task.uid,
            n=FORKED,
            at=task.began,
            activity=first,
            by=self._itself,
            via="fork",
        )
        at = branch.exit.at if branch.exit else None
        ended = execution_events.build_end(
            task.uid, built.story, task.status, built.bytes, facets, at=at
        )
        return [started, forked, *events, ended]

    def of_end(self, kept: Streams) -> list[AnyEvent]:
        """The command has ended."""
        facets = {"packages": self._packages.facet(self._used), "new_bytes": self._store.added}
        printed = execution_events.build_stream_events(self._uid, self._store, kept.kept)
        left = self._branches.exit
        ended = msgspec.structs.replace(
            self._ending,
            at=time.time_ns(),
            status=None if left and left.signal else 0,
            signal=left.signal or None if left else None,
            facets={**self._ending.facets, **facets},
        )
        return [*printed, ended]

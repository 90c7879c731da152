"""Build the events of a session: of its command, and of each task that it forked.

The files that the command itself read are recorded once. Each task has the facet `inherits`, which
names the command's execution, instead of a copy of these reads.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from clew.packages.owners import Packages
from clew.project_directory import ProjectDirectory, clew_paths
from clew.prov.event_numbers import FORKED, LOST_CONTENT
from clew.prov.events import AnyEvent, Informed
from clew.prov.locators import file_locator
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
"""stdin, stdout or stderr by the name that the tracer sees: a pipe or a terminal."""


class SessionEvents:
    """The events of one session. Content that they name goes into the store."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        host: LocalHost,
        redactor: Redactor,
        beginning: ExecutionStart,
        contents: ContentCapture,
        store: Store,
        branches: TraceSplitter,
        name: str,
    ) -> None:
        """`name` labels the command in lineage."""
        self.input_snapshot: InputSnapshot | None = None
        """The files that the command read; set by `of_command`."""
        self._uid = beginning.event.execution
        self._redactor = redactor
        self._start = beginning
        self._store = store
        self._branches = branches
        self._name = name
        self._packages = Packages(settings.owners)
        self._builder = TraceConverter(
            locate=partial(file_locator, host.machine),
            boot=host.boot,
            variables=beginning.variables,
            sealed=beginning.sealed,
            redactor=redactor,
            ignore=clew_paths(directory, settings),
            contents=contents,
            owners=self._packages.owners,
        )

    def of_command(self, names: Names) -> list[AnyEvent]:
        """The start of the command, and what it did so far."""
        own, self._branches.own = self._branches.own, []
        trace = self._branches.descriptions.complete(own)
        self._exec = next(record for record in trace if isinstance(record, Exec))
        self._openings = next(record for record in trace if isinstance(record, Held))
        self.input_snapshot = InputSnapshot.from_trace(trace)
        built = self._builder.build(self._uid, trace, names)
        self._used = set(built.owners.values())
        self._end = execution_events.build_end(self._uid, built.state, 0, 0, {})
        self._process = built.first
        return [
            self._start.event,
            *execution_events.label_process(built.events, built.first, self._name),
        ]

    def of_task(
        self, task: ForkedTask, branch: TraceBranch, failure: Exception | None
    ) -> list[AnyEvent]:
        """All events of a task that has ended. `failure`: why some content was not stored."""
        started = msgspec.structs.replace(
            self._start.event,
            execution=task.uid,
            activity=task.uid,
            at=task.began,
            command=self._redactor.arguments(task.command).words,
            facets={**self._start.event.facets, "inherits": self._uid},
        )
        before = self._store.added
        trace = trace_as_command(task, branch, self._exec, self._openings)
        names, printed = task.output.names, {"stdout": task.output.capture}
        built = self._builder.build(task.uid, self._branches.descriptions.complete(trace), names)
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
                    task.uid, LOST_CONTENT, "content", f"some content could not be stored: {why}"
                )
            )
        first = built.state.processes[branch.spawn.image].uid
        events = execution_events.label_process(events, first, task.name)
        forked = Informed(
            execution=task.uid,
            n=FORKED,
            at=task.began,
            activity=first,
            by=self._process,
            via="fork",
        )
        at = branch.exit.at if branch.exit else None
        ended = execution_events.build_end(
            task.uid, built.state, task.status, built.bytes, facets, at=at
        )
        return [started, forked, *events, ended]

    def of_end(self, kept: Streams) -> list[AnyEvent]:
        """The output and the end of the command."""
        facets = {"packages": self._packages.facet(self._used), "new_bytes": self._store.added}
        printed = execution_events.build_stream_events(self._uid, self._store, kept.kept)
        left = self._branches.exit
        ended = msgspec.structs.replace(
            self._end,
            at=time.time_ns(),
            status=None if left and left.signal else 0,
            signal=left.signal or None if left else None,
            facets={**self._end.facets, **facets},
        )
        return [*printed, ended]

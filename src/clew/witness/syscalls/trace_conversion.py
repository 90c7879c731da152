"""Build the events of an execution from its trace.

A finished command, a task of a session and a command whose recorder was killed all use this
converter, so their records hold the same facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from clew.documents.ids import Locator, Uid
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.witness.syscalls.event_builder import EventBuilder
from clew.witness.syscalls.interpreter import interpret
from clew.witness.syscalls.trace_contents import TraceContents
from clew.witness.syscalls.trace_format import AnyRecord
from clew.witness.syscalls.trace_state import TraceContext, TraceState

if TYPE_CHECKING:
    from clew.witness.syscalls.reused_subtree import ReusedSubtree


class ConvertedTrace(Struct, frozen=True):
    """The events of one execution, and what they were built from."""

    events: list[AnyEvent]
    state: TraceState
    owners: Mapping[bytes, str]
    """The package of each file that has one."""
    bytes: int
    """The size of all content that the events name."""

    @property
    def first(self) -> Uid:
        """The first process; empty where none was seen."""
        return next((process.uid for process in self.state.processes.values()), Uid(""))


class TraceConverter(Struct, frozen=True):
    """The settings that all executions of one recorder share."""

    locate: Callable[[bytes], Locator]
    """The locator of a path."""
    boot: str
    variables: Mapping[str, str]
    """The recorded variables of the execution: a process records only what differs from them."""
    sealed: Mapping[str, str]
    """The seals of its secret variables."""
    redactor: Redactor
    ignore: tuple[bytes, ...]
    """Clew's own paths, which no record mentions."""
    contents: TraceContents
    owners: Callable[[list[bytes]], Mapping[bytes, str]]
    environ: Mapping[str, str] | None = None
    """The variables to run git with; None: it is not asked about files that were read."""

    def build(
        self,
        execution: Uid,
        trace: Sequence[AnyRecord],
        streams: Mapping[bytes, str],
        reused: Mapping[int, ReusedSubtree] | None = None,
    ) -> ConvertedTrace:
        """The events of `trace`; the content they name is put into the store.

        `streams` maps pipes and terminals to stdin, stdout and stderr. `reused` holds what was
        reused instead of run again, by the tokens in the trace.
        """
        context = TraceContext(
            execution=execution,
            locate=self.locate,
            boot=self.boot,
            variables=self.variables,
            redactor=self.redactor,
            ignore=self.ignore,
            streams=streams,
            sealed=self.sealed,
        )
        state = interpret(context, trace, self.contents, reused)
        owners = self.owners(state.preexisting_paths())
        builder = EventBuilder(context, state, self.contents, owners, self.environ)
        return ConvertedTrace(list(builder.events()), state, owners, builder.bytes)

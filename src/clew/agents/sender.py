"""Deliver what is in a spool: the oldest batch first, again and again until it is taken.

While the destination cannot be reached, everything stays in the spool. What the destination refuses
for good is split by execution, so that one bad execution does not hold up the others; the refused
events are kept aside and logged, as long as the spool has room for them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.agents.destinations import Destination
from clew.agents.spool import Spool
from clew.errors import ClewError, Damaged
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.cluster.watch_declarations import declare_lost
from clew.prov.events import AnyEvent

_LOG = logging.getLogger("clew.agents")
MAX_EVENTS = 50_000
"""Events in one request."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 15.0
"""Seconds between attempts, doubled after each."""
_IDLE_SECONDS = 5.0
_REFUSALS = frozenset(
    {"rejected", "malformed", "usage", "too-large", "not-understood", "no-content"}
)
"""Codes of errors that another attempt does not change."""


class Sender:
    """Delivers the batches of one spool."""

    def __init__(self, spool: Spool, destination: Destination) -> None:
        self._spool = spool
        self._destination = destination
        self.delivered = 0
        """Events that the destination has."""
        self.refused = 0
        """Events that were set aside."""

    def run(self, stopping: threading.Event) -> None:
        """Deliver until `stopping` is set, then try once more."""
        pause = _FIRST_PAUSE
        while not stopping.is_set():
            try:
                if not self.deliver_some():
                    self._spool.wait_for_batch(_IDLE_SECONDS)
                pause = _FIRST_PAUSE
            except ClewError as error:
                _LOG.warning("not delivered, trying again: %s", error.message)
                stopping.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        try:
            while self.deliver_some():
                pass
        except ClewError as error:
            waiting = len(self._spool.list_batches())
            _LOG.warning("%d batches stay in the spool: %s", waiting, error.message)

    def deliver_some(self) -> bool:
        """Deliver the oldest batches as one; False if there are none. Raises what another attempt
        may solve."""
        batches, events = self._read_oldest()
        if not batches:
            return False
        with self._spool.open_contents() as contents:

            def deliver(part: Sequence[AnyEvent]) -> None:
                self._destination.deliver(part, contents)
                self.delivered += len(part)

            self._deliver(events, deliver)
        self._spool.remove(batches)
        if not self._spool.list_batches():
            self._spool.delete_delivered_contents()
        return True

    def _read_oldest(self) -> tuple[list[Path], list[AnyEvent]]:
        batches: list[Path] = []
        events: list[AnyEvent] = []
        for batch in self._spool.list_batches():
            try:
                found = self._spool.read(batch)
            except Damaged as error:
                kept = self._spool.set_aside_damaged(batch)
                _LOG.error("%s; it is kept as %s", error.message, kept)
                continue
            if batches and len(events) + len(found) > MAX_EVENTS:
                break
            batches.append(batch)
            events += found
        return batches, events

    def _deliver(
        self, events: list[AnyEvent], deliver: Callable[[Sequence[AnyEvent]], None]
    ) -> None:
        """Deliver the events, without those of executions that are refused for good."""
        try:
            deliver(events)
        except ClewError as error:
            if error.code not in _REFUSALS:
                raise
            uids = list(dict.fromkeys(event.execution for event in events))
            if len(uids) == 1:
                self._declare_lost(events, deliver)
                kept = self._spool.set_aside(events)
                self.refused += len(events)
                _LOG.error(
                    "refused: %s; %d events are kept as %s", error.message, len(events), kept
                )
                return
            first = set(uids[: len(uids) // 2])
            self._deliver([event for event in events if event.execution in first], deliver)
            self._deliver([event for event in events if event.execution not in first], deliver)

    def _declare_lost(
        self, events: list[AnyEvent], deliver: Callable[[Sequence[AnyEvent]], None]
    ) -> None:
        """The containers whose accesses are refused count as watched no longer."""
        lost = list(number_events(declare_lost(events)))
        try:
            if lost:
                deliver(lost)
        except ClewError as error:  # then nothing of this execution is taken
            if error.code not in _REFUSALS:
                raise

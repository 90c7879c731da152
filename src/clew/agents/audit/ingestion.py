"""From the lines of an audit log to the spool, with a checkpoint.

Lines are folded in batches. The events of a batch are in the spool before the checkpoint moves; a
crash between both repeats the batch. While the spool has no room, nothing more is read: the log
keeps the events.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from clew.agents.audit.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from clew.agents.audit.log_reader import LOST, Line, LogReader
from clew.agents.spool import Spool
from clew.errors import ClewError, Full
from clew.witness.kubernetes_audit.audit_event import Malformed, parse_event
from clew.witness.kubernetes_audit.fold import AuditFold, Observed

_LOG = logging.getLogger("clew.agents")
_BATCH_LINES = 1000
_BATCH_BYTES = 8 << 20
_POLL_SECONDS = 0.2
_ROOM_SECONDS = 5.0
_RETRY_SECONDS = 1.0
_EVENT_BEGINS = b'{"kind":"Event","apiVersion":"audit.k8s.io'
"""Within a line, this is the event that was written after a crash of the API server had cut the one
before. It cannot be within a text of an event, where quotes are escaped."""


class AuditIngestion:
    """Folds audit events and appends what they say to the spool. Safe to use from any thread."""

    def __init__(
        self, state: Path, spool: Spool, *, source: str, patterns: Sequence[str] = ()
    ) -> None:
        """`state`: the directory of the checkpoint. `source`, `patterns`: see `AuditFold`."""
        self._path = state / "checkpoint.json"
        self._spool = spool
        self._source, self._patterns = source, patterns
        self._lock = threading.Lock()
        self._unread = Counter[str]()
        self.lines = self.gaps = 0
        self._load()

    def _load(self) -> None:
        self.checkpoint: Checkpoint = load_checkpoint(self._path)
        state = self.checkpoint.state
        self._fold = AuditFold(state, source=self._source, patterns=self._patterns)

    def ingest_lines(self, lines: Sequence[Line], stopping: threading.Event) -> bool:
        """Fold lines of the log, append and move the checkpoint; waits for room. False: the agent
        stops first, and the next start repeats these lines."""
        with self._lock:
            found = Observed()
            for line in lines:
                if line.gap:
                    self._unread[line.gap] += 1
                else:
                    self._add_event(line.text, found)
            self._add_gaps(found)
            if not self._retry(lambda: self._append(found), stopping):
                return False
            self.checkpoint.position = lines[-1].then
            return self._retry(lambda: save_checkpoint(self._path, self.checkpoint), stopping)

    def ingest_events(self, events: Sequence[msgspec.Raw]) -> None:
        """Fold events that the webhook got; raises Full, and keeps nothing, if there is no room."""
        with self._lock:
            found = Observed()
            try:
                for event in events:
                    self._add_event(bytes(event), found)
                self._add_gaps(found)
                self._append(found)
                save_checkpoint(self._path, self.checkpoint)
            except ClewError:
                self._load()  # the API server sends these events again
                raise

    def _retry(self, action: Callable[[], None], stopping: threading.Event) -> bool:
        """Call `action` until there is room for it; False if the agent stops first."""
        while True:
            try:
                action()
                return True
            except Full as error:  # of the spool, or of the disk
                _LOG.warning("waiting for room: %s", error.message)
            self._spool.wait_for_room(_ROOM_SECONDS)
            if stopping.wait(_RETRY_SECONDS):
                return False

    def _append(self, found: Observed) -> None:
        self._spool.append(found.events, list(dict.fromkeys(found.contents)))

    def _add_event(self, text: bytes, found: Observed) -> None:
        self.lines += 1
        try:
            self._fold.add(parse_event(text), found)
            return
        except Malformed as error:
            self._unread[f"a line is not an audit event: {error}"] += 1
        second = text.rfind(_EVENT_BEGINS)
        if second > 0:
            self._add_event(text[second:], found)

    def _add_gaps(self, found: Observed) -> None:
        """Add what could not be read of a batch: one gap for each reason, with how often."""
        for why, count in self._unread.items():
            self.gaps += count
            reason = f"{why} ({count} times)" if count > 1 else why
            _LOG.warning("%s: %s", LOST, reason)
            self._fold.add_gap(time.time_ns(), LOST, reason, found)
        self._unread.clear()


class AuditLog:
    """A witness: follows the log file."""

    def __init__(self, log: Path, ingestion: AuditIngestion, *, once: bool = False) -> None:
        """`once`: read what is there, and end."""
        self._log = log
        self._ingestion = ingestion
        self._once = once

    def run(self, stopping: threading.Event) -> None:
        reader = LogReader(self._log, self._ingestion.checkpoint.position)
        try:
            while not stopping.is_set():
                self._read_available(reader, stopping)
                if self._once:
                    return
                stopping.wait(_POLL_SECONDS)
        finally:
            reader.close()

    def _read_available(self, reader: LogReader, stopping: threading.Event) -> None:
        batch: list[Line] = []
        size = 0
        for line in reader.read_available():
            batch.append(line)
            size += len(line.text)
            if len(batch) >= _BATCH_LINES or size >= _BATCH_BYTES:
                if stopping.is_set() or not self._ingestion.ingest_lines(batch, stopping):
                    return
                batch, size = [], 0
        if batch:
            self._ingestion.ingest_lines(batch, stopping)

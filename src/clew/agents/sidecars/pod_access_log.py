"""Follow the access log of one Pod's sidecar.

A piece of the log is folded, its events are appended to the spool, the checkpoint is written, and
only then the piece is confirmed to the sidecar. A crash in between repeats the piece from the same
state, which gives the same events. While the spool is full nothing is read: the log keeps it.
"""

import logging
import time
from pathlib import Path

import msgspec
from blake3 import blake3

from clew.agents.sidecars.access_log_files import LogDirectory, LogFile
from clew.agents.spool import Spool
from clew.atomic_file import write_atomically
from clew.documents.ids import Uid
from clew.prov.events import AnyEvent
from clew.store.errors import from_os
from clew.witness.object_stores.access_log import MAX_LINE_BYTES, parse_line
from clew.witness.object_stores.pod_context import PodContext
from clew.witness.object_stores.summaries import MINUTE
from clew.witness.object_stores.traffic_fold import TrafficFold, TrafficState, finish_minutes

_LOG = logging.getLogger("clew.agents")
_PIECE_BYTES = 1 << 20
_HEAD_BYTES = 4096
_PATIENCE = 10 * 10**9
"""How long a line waits for the API server to name the container that was running. It counts while
the API server can be reached: an outage must not change to whom a request is attributed."""
_LATE = 5 * 10**9
"""When a minute is over: Envoy writes its lines within half a second."""
_FOREVER = 2**62
_REQUESTS = "requests of the Pod"


class Checkpoint(msgspec.Struct, kw_only=True):
    inode: int = 0
    head: bytes = b""
    """The digest of the beginning of what was read: an inode may be used again."""
    offset: int = 0
    dropped: int = 0
    state: TrafficState = msgspec.field(default_factory=TrafficState)


class PodLog:
    def __init__(self, directory: LogDirectory, checkpoint: Path, spool: Spool) -> None:
        self._directory = directory
        self._path = checkpoint
        self._spool = spool
        self._checkpoint = _load(checkpoint)
        self._context: PodContext | None = None
        self._connected_at: int | None = 0
        self.lines = 0
        self.unreadable = 0

    @property
    def context(self) -> PodContext | None:
        return self._context

    def set_context(self, context: PodContext | None) -> None:
        self._context = context

    def read(self, *, last: bool = False, connected_at: int | None = 0) -> bool:
        """Read one piece; False if there was nothing to read. Raises Full if the spool is.
        `last`: the Pod is gone, so nothing more is waited for. `connected_at`: since when the API
        server tells of the Pod; None while it is away."""
        self._connected_at = connected_at
        if self._context is None:
            return False
        try:
            return self._read(TrafficFold(self._context, self._checkpoint.state), last=last)
        except BaseException:  # the fold is ahead of what is in the spool
            self._checkpoint = _load(self._path)
            raise

    def _read(self, fold: TrafficFold, *, last: bool) -> bool:
        now = time.time_ns()
        before = self._checkpoint.inode, self._checkpoint.offset
        events = self._report_dropped(fold, now)
        read: list[LogFile] = []
        file = self._find_file(fold, events, read, now)
        if file is not None:
            self._read_piece(fold, file, events, now, last=last)
        here = self._checkpoint.inode, self._checkpoint.offset
        if here == before:
            events += fold.finish_minutes(_FOREVER if last else now - _LATE)
        if here == before and not events:
            return False
        self._spool.append(events)
        if file is not None:
            self._checkpoint.head = self._hash_head(file)
        _save(self._path, self._checkpoint)
        for one in read:
            self._directory.delete(one)
        self._directory.confirm(*here)
        return here != before

    def close(self) -> None:
        self._directory.close()

    def forget(self) -> None:
        """The Pod is gone, and all of its log was read."""
        self._path.unlink(missing_ok=True)

    # -- files

    def _find_file(
        self, fold: TrafficFold, events: list[AnyEvent], read: list[LogFile], now: int
    ) -> LogFile | None:
        """The file to read on in. Those that were read to the end are added to `read`."""
        files = self._directory.list_files()
        here = self._checkpoint
        known = next((one for one in files if one.inode == here.inode), None)
        if files and (known is None or not self._is_same(known)):
            if here.inode:
                events += fold.report_lost(now, _REQUESTS, "a part of the log was removed unread")
            here.inode, here.offset = files[0].inode, 0
        while files and files[0].inode != here.inode:
            read.append(files.pop(0))  # a crash came between reading and deleting it
        for number, file in enumerate(files):
            if file.size < here.offset:
                events += fold.report_lost(now, _REQUESTS, "the log was truncated")
                here.offset = 0
            if file.size > here.offset or number + 1 == len(files):
                return file
            read.append(file)
            here.inode, here.offset = files[number + 1].inode, 0
        return None

    def _is_same(self, file: LogFile) -> bool:
        """Whether the file still begins with what was read of it."""
        return file.size < self._checkpoint.offset or self._hash_head(file) == self._checkpoint.head

    def _hash_head(self, file: LogFile) -> bytes:
        head = self._directory.read(file, 0, min(self._checkpoint.offset, _HEAD_BYTES))
        return blake3(head).digest(length=16) if head else b""

    def _report_dropped(self, fold: TrafficFold, now: int) -> list[AnyEvent]:
        dropped = self._directory.count_dropped()
        if dropped <= self._checkpoint.dropped:
            return []
        number = dropped - self._checkpoint.dropped
        self._checkpoint.dropped = dropped
        why = f"the sidecar deleted {number} files of its log, because no agent read them"
        return list(fold.report_lost(now, _REQUESTS, why))

    # -- lines

    def _read_piece(
        self, fold: TrafficFold, file: LogFile, events: list[AnyEvent], now: int, *, last: bool
    ) -> None:
        piece = self._directory.read(file, self._checkpoint.offset, _PIECE_BYTES)
        end = piece.rfind(b"\n") + 1
        if not end and (last or len(piece) > MAX_LINE_BYTES):
            end = len(piece)
        taken = 0
        for line in piece[:end].splitlines(keepends=True):
            if not self._add_line(fold, line, events, now, last=last):
                break
            taken += len(line)
        self._checkpoint.offset += taken

    def _add_line(
        self, fold: TrafficFold, raw: bytes, events: list[AnyEvent], now: int, *, last: bool
    ) -> bool:
        """False if it is too early to say which container made the request."""
        assert self._context is not None
        line = parse_line(raw)
        if line is None:
            self.unreadable += 1
            why = "a line of the log is damaged or too long"
            events += fold.report_lost(now // MINUTE * MINUTE, _REQUESTS, why)
            return True
        known = self._context.containers_at(line.began)
        if not known and not last and not self._has_waited(line.began, now):
            return False
        self.lines += 1
        events += fold.add(line)
        return True

    def _has_waited(self, began: int, now: int) -> bool:
        """Whether the API server had the time to name the container of a request."""
        if self._connected_at is None:
            return False
        return now - max(began, self._connected_at) >= _PATIENCE


def finish_log(path: Path, pod: Uid, spool: Spool) -> None:
    """Report what is in the checkpoint of a log that is gone, and was not reported yet: the number
    of requests of the last minute. Raises Full if the spool is."""
    checkpoint = _load(path)
    events = list(finish_minutes(checkpoint.state.summaries, pod, _FOREVER))
    if events:
        spool.append(events)
        _save(path, checkpoint)


def _save(path: Path, checkpoint: Checkpoint) -> None:
    try:
        write_atomically(path, msgspec.msgpack.encode(checkpoint), sync=True)
    except OSError as error:
        raise from_os(error, doing=f"write {path}") from error


def _load(path: Path) -> Checkpoint:
    """Without a checkpoint, or with a damaged one, the log is read from its beginning."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return Checkpoint()
    except msgspec.DecodeError as error:
        _LOG.warning("the checkpoint %s is damaged, so the log is read again: %s", path, error)
        return Checkpoint()

"""Batches of events on disk, from the moment they are observed until they are delivered.

A witness appends a batch, and only then moves its own checkpoint. The sender removes a batch when
it was delivered. A crash between two steps repeats a step, which is harmless: the number of an
event is a hash of what it says. Contents that events name as stored are in a store beside the
batches, until they are delivered too.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import zstandard

from clew.errors import Busy, ClewError, Damaged, Full
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.events import AnyEvent, from_batch, to_batch
from clew.prov.export.recorded_events import list_stored_digests
from clew.store import Store
from clew.store.errors import from_os

DEFAULT_LIMIT = 2 << 30
"""Bytes on disk after which a spool has no room."""
MAX_BATCH_BYTES = 256 << 20
"""A batch that a damaged disk makes larger is not read."""
REFUSED_SHARE = 8
"""Refused batches may use another `1 / REFUSED_SHARE` of the limit."""
_NAME = re.compile(r"([0-9]{16})\.batch(?:\.damaged)?")
_LOG = logging.getLogger("clew.agents")


class Spool:
    """The spool of one agent. Safe to use from any thread."""

    def __init__(self, directory: Path, *, limit: int = DEFAULT_LIMIT) -> None:
        """`limit`: bytes; appending beyond it raises Full, and nothing is lost that was there."""
        self._directory = directory
        self._limit = limit
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._stopping = False
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._holder = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._lock_directory()
            for part in (*directory.glob("*.part"), *self._refused.glob("*.part")):
                part.unlink()
            self._sizes = {path: path.stat().st_size for path in directory.glob("*.batch")}
        except OSError as error:
            raise from_os(error, doing=f"use the spool {directory}") from error
        known = [*self._sizes, *self._refused.glob("*.batch*")]
        self._next = 1 + max(map(_sequence, known), default=0)
        self.deleted = 0
        """Refused batches that had to make room for later ones."""

    def _lock_directory(self) -> None:
        try:
            fcntl.flock(self._holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._holder)
            raise Busy(
                f"another agent uses the spool {self._directory}",
                hint="stop it, or use another --state",
            ) from None

    # -- the witness

    def append(self, events: Iterable[AnyEvent], contents: Sequence[bytes] = ()) -> None:
        """Keep the events, numbered and each once, and the small contents that they name as stored.
        When this returns, they survive a power cut. Raises Full, and keeps nothing, if there is no
        room."""
        numbered = {(event.execution, event.n): event for event in number_events(events)}
        if not numbered:
            return
        batch = zstandard.ZstdCompressor(level=1).compress(to_batch(list(numbered.values())))
        with self._lock:
            if self._used() + len(batch) + sum(map(len, contents)) > self._limit:
                raise Full(
                    f"the spool {self._directory} is full", hint="is the server there? see the log"
                )
            if contents:
                with Store(self._store, lease="spool") as store:
                    store.put_all(contents)
                    store.flush()
                    self._write(batch)
            else:
                self._write(batch)
            self._changed.notify_all()

    @contextmanager
    def storing(self) -> Iterator[Store]:
        """A store for contents of any size. Flush it, and append the events that name them before
        the block ends."""
        with Store(self._store, lease="spool") as store:
            yield store

    def has_room(self) -> bool:
        """Whether a batch of ordinary size can be appended."""
        with self._lock:
            return self._used() < self._limit

    def wait_for_room(self, seconds: float) -> bool:
        """Wait until batches were delivered; False if there is no room after these seconds."""
        with self._lock:
            self._changed.wait_for(lambda: self._used() < self._limit, seconds)
            return self._used() < self._limit

    # -- the sender

    def list_batches(self) -> list[Path]:
        """The batches, oldest first."""
        with self._lock:
            return sorted(self._sizes)

    def wait_for_batch(self, seconds: float) -> None:
        """Wait until there is a batch, or these seconds have passed."""
        with self._lock:
            self._changed.wait_for(lambda: bool(self._sizes) or self._stopping, seconds)

    def wake(self) -> None:
        """End all waiting for batches, because the agent stops."""
        with self._lock:
            self._stopping = True
            self._changed.notify_all()

    def read(self, batch: Path) -> list[AnyEvent]:
        """The events of a batch; Damaged if the disk changed it."""
        try:
            packed = zstandard.ZstdDecompressor().decompress(
                batch.read_bytes(), max_output_size=MAX_BATCH_BYTES
            )
            return from_batch(packed)
        except (zstandard.ZstdError, msgspec.DecodeError) as error:
            raise Damaged(f"{batch} is damaged: {error}") from error
        except OSError as error:
            raise from_os(error, doing=f"read {batch}") from error

    def remove(self, batches: Iterable[Path]) -> None:
        """Forget batches that were delivered."""
        with self._lock:
            for batch in batches:
                batch.unlink(missing_ok=True)
                self._sizes.pop(batch, None)
            self._changed.notify_all()

    def set_aside(self, events: Sequence[AnyEvent]) -> Path:
        """Keep events that the destination refuses where a person can look at them; they are not
        sent again. The oldest make room for them."""
        batch = zstandard.compress(to_batch(list(events)))
        with self._lock:
            self._refused.mkdir(mode=0o700, exist_ok=True)
            self._delete_refused(len(batch))
            return self._write_file(self._refused, batch)

    def set_aside_damaged(self, batch: Path) -> Path:
        with self._lock:
            self._refused.mkdir(mode=0o700, exist_ok=True)
            self._delete_refused(self._sizes.get(batch, 0))
            kept = batch.rename(self._refused / f"{batch.name}.damaged")
            self._sizes.pop(batch, None)
            return kept

    def _delete_refused(self, needed: int) -> None:
        """Delete the oldest refused batches until another one of this size has room. A larger one
        is kept alone: it had room in the spool."""
        known = sorted(self._refused.glob("*.batch*"), key=_sequence)
        sizes = {path: path.stat().st_size for path in known}
        excess = sum(sizes.values()) + needed - self._limit // REFUSED_SHARE
        deleted = 0
        for path, size in sizes.items():
            if excess <= 0:
                break
            path.unlink()
            excess -= size
            deleted += 1
        if deleted:
            self.deleted += deleted
            _LOG.error(
                "%d refused batches were deleted to make room in %s, %d since the start",
                deleted,
                self._refused,
                self.deleted,
            )

    @contextmanager
    def open_contents(self) -> Iterator[Store]:
        """The store of contents, to read from."""
        with Store(self._store) as store:
            yield store

    def delete_delivered_contents(self) -> None:
        """Delete the contents that no waiting batch names."""
        if not self._store.exists():
            return
        with Store(self._store) as store:
            store.gc(self._waiting_digests)

    def _waiting_digests(self) -> set[str]:
        found: set[str] = set()
        for batch in self.list_batches():
            try:
                found |= list_stored_digests(self.read(batch))
            except ClewError:  # it is set aside when it is its turn
                continue
        return found

    def close(self) -> None:
        os.close(self._holder)

    # -- files

    @property
    def _store(self) -> Path:
        return self._directory / "store"

    @property
    def _refused(self) -> Path:
        return self._directory / "refused"

    def _used(self) -> int:
        packs = self._store / "packs"
        stored = sum(entry.stat().st_size for entry in os.scandir(packs)) if packs.is_dir() else 0
        return stored + sum(self._sizes.values())

    def _write(self, batch: bytes) -> None:
        path = self._write_file(self._directory, batch)
        self._sizes[path] = len(batch)

    def _write_file(self, directory: Path, batch: bytes) -> Path:
        path = directory / f"{self._next:016d}.batch"
        part = path.with_suffix(".part")
        try:
            with open(part, "wb") as file:
                file.write(batch)
                file.flush()
                os.fsync(file.fileno())
            part.rename(path)
            _sync_directory(directory)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise from_os(error, doing=f"write to the spool {directory}") from error
        self._next += 1
        return path


def _sequence(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else 0


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

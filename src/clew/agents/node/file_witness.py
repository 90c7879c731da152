"""The file witness of a node: from what the observer saw to events in the spool.

Everything that was observed is folded in the order it happened; then what was read of contents;
then the numbers of versions and the events go to disk. What cannot be kept is counted, and reported
as a gap as soon as there is room.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from clew.agents.node.containers.container_discovery import leaves_mounts
from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.content_queue import ContentQueue
from clew.agents.node.event_translation import (
    MAX_CHILDREN,
    AccessTranslator,
    NameTranslator,
    list_files,
)
from clew.agents.node.kernel.fanotify import OVERFLOW, parse_events
from clew.agents.node.kernel.volume_mount import VolumeMount
from clew.agents.node.layer.layer_records import LayerRecords
from clew.agents.node.lifecycle_events import (
    container_ended,
    container_found,
    container_missed,
    containers_lost,
)
from clew.agents.node.losses import Losses
from clew.agents.node.observation_batch import MissedContainer, ObservationBatch, Observer
from clew.agents.node.version_journal import VersionJournal
from clew.agents.spool import Spool
from clew.atomic_file import write_atomically
from clew.documents.ids import Locator, Uid
from clew.errors import Full
from clew.prov.events import AnyEvent, Started
from clew.witness.volumes.access_fold import AccessFold
from clew.witness.volumes.access_order import order_accesses, put_in_time
from clew.witness.volumes.accesses import Access, ContentRequest, FileRename
from clew.witness.volumes.selection import (
    Policy,
    Subject,
    selects_path,
    selects_same_paths,
    stores,
)
from clew.witness.volumes.volumes import Volume

_LOG = logging.getLogger("clew.agents")
FLUSH_SECONDS = 0.5
MAX_BATCH_EVENTS = 20_000
MAX_WAITING_EVENTS = 500_000
"""Events kept in memory while the spool has no room."""
_FULL_QUEUE = "the kernel's queue was full"


class FileWitness:
    """Runs until it is told to stop; `Witness` of `agents.agent`."""

    def __init__(
        self,
        *,
        observer: Observer,
        spool: Spool,
        state: Path,
        policy: Policy,
        node: Started,
        subject_of: dict[Uid, Subject],
    ) -> None:
        """`subject_of`: what the policy looks at, of each watched container."""
        self._observer = observer
        self._spool = spool
        self._policy = policy
        self._node = node
        self._subject_of = subject_of
        self._status = state / "status.json"
        self._journal = VersionJournal(state / "versions.journal")
        self._fold = AccessFold(keep=selects_same_paths(policy))
        self.counts: Counter[str] = Counter()
        self._contents = ContentQueue(spool, self.counts)
        self._containers: dict[Uid, WatchedContainer] = {}
        self._translators: dict[Uid, AccessTranslator] = {}
        self._layers: dict[tuple[Uid, bytes], LayerRecords] = {}
        self._names = NameTranslator(self._report_names, self.counts)
        self._events: list[AnyEvent] = [node]
        self._bytes: list[bytes] = []
        self._late_names: list[Access] = []
        """Changes of names whose turn may only come after the next accesses."""
        self._losses = Losses(self._events.append, self.counts)
        self._report_restart()
        self._at = 0
        self._last = 0
        """The time of the last access."""
        self._flushed = 0.0

    def forget_absent(self, present: set[Uid]) -> None:
        """Forget the numbers of Pods that are not on this node any more."""
        self._journal.compact(present)

    def watched(self) -> set[Uid]:
        """The containers that are watched now."""
        return set(self._containers)

    def run(self, stopping: threading.Event) -> None:
        observing = threading.Thread(target=self._observer.run, name="clew-observer")
        observing.start()
        self._contents.start()
        try:
            while not stopping.is_set():
                self._take(self._observer.next_batch(FLUSH_SECONDS))
        finally:
            self._observer.stop()
            observing.join()
            while (last := self._observer.next_batch(0)) is not None:
                self._take(last)
            self._contents.stop()
            while self._contents.busy:
                self._take_large()
                self._flush()
                time.sleep(0.01)
            self._flush()
            self._write_status()
            self._journal.close()

    # -- one batch

    def _take(self, seen: ObservationBatch | None) -> None:
        if seen is not None:
            self._at = seen.at
            for keys in seen.unwatched:
                self._fold.expose(keys)
            for container in seen.found:
                self._begin(container)
            if seen.containers_lost:
                self._events.append(containers_lost(self._node.execution, seen.at))
            for missed in seen.missed:
                self._report_missed(missed)
            self._fold_batch(seen)
            self._finish_names(seen.gone)
            for uid in seen.gone:
                self._end(uid)
        self._take_large()
        now = time.monotonic()
        if now - self._flushed > FLUSH_SECONDS or len(self._events) > MAX_BATCH_EVENTS:
            for translator in self._translators.values():
                self._apply(translator.long_writes(time.time_ns()))
            self._find_own_mounts()
            self._flush()

    def _begin(self, container: WatchedContainer) -> None:
        uid, pod = container.uid, container.pod.uid
        self._containers[uid] = container
        known = self._journal.numbers(pod)
        if known:
            self._fold.counter.restore(pod, known)
        elif container.late:
            self._fold.counter.start_late(pod, container.watched_at)
        for one in container.mounts:
            self._fold.watch(one.volume, container.watched_at)
        subject = self._subject_of[uid]
        self._translators[uid] = AccessTranslator(
            container,
            lambda volume, path: selects_path(self._policy, subject, volume, path),
            self.counts,
        )
        self.counts["containers"] += 1
        self._events += container_found(container, self._node.name or "")

    def _end(self, uid: Uid) -> None:
        container = self._containers.pop(uid)
        self._translators.pop(uid, None)
        self._subject_of.pop(uid, None)
        self._layers = {key: one for key, one in self._layers.items() if key[0] != uid}
        self._losses.forget(uid)
        present = {
            mount.planned.volume.key for one in self._containers.values() for mount in one.mounts
        }
        for one in container.mounts:
            if one.planned.volume.key not in present:
                self._fold.unwatch(one.planned.volume.key)
        self._events += container_ended(container, self._at)
        container.close()

    def _fold_batch(self, seen: ObservationBatch) -> None:
        queues: list[list[Access]] = []
        for uid, buffer in seen.accesses.items():
            translator = self._translators[uid]
            accesses = translator.translate(parse_events(buffer), seen.at)
            queues.append(sorted(accesses, key=lambda access: access.at))  # by their opening
            self._report_lost(uid, translator)
        for uid, mount, data in seen.layers:
            queues.append(list(self._layer_accesses(uid, mount, data, seen.at)))
        names = [*self._late_names, *self._name_accesses(seen)]
        due = len(self._late_names)
        ordered, self._late_names = order_accesses(queues, names, due=due)
        timed = list(put_in_time(ordered, seen.at, after=self._last))
        self._last = max([self._last, *(access.at for access in timed)])
        self._apply(timed)

    def _finish_names(self, gone: Sequence[Uid]) -> None:
        """Take the changes of names by containers that are gone: all their accesses were read."""
        last = max(
            (i for i, one in enumerate(self._late_names) if one.container in gone), default=-1
        )
        self._apply(self._late_names[: last + 1])
        del self._late_names[: last + 1]

    def _apply(self, accesses: Iterable[Access]) -> None:
        for access in accesses:
            self._events += self._fold.apply(access)
            for request in self._fold.take_requests():
                self._read(request)

    def _layer_accesses(
        self, uid: Uid, mount: WatchedMount, data: bytes, at: int
    ) -> Iterator[Access]:
        key = mount.planned.volume.key
        known = self._layers.setdefault(
            (uid, mount.planned.point), LayerRecords(uid, key, mount.planned.prefix)
        )
        for access in known.parse(data, at):
            self.counts["events"] += 1
            if isinstance(access, FileRename) and access.directory:
                children = tuple(
                    list_files(mount.mount, access.handle, access.target)[:MAX_CHILDREN]
                )
                yield msgspec.structs.replace(access, children=children)
            elif selects_path(self._policy, self._subject_of[uid], key, access.path):
                yield access

    def _name_accesses(self, seen: ObservationBatch) -> Iterator[Access]:
        for number, (device, event, container, known) in enumerate(seen.names):
            mounts = [
                (uid, one)
                for uid, one in self._mounts()
                if one.mount.device == device and one.layer is None
            ]
            if event.mask & OVERFLOW:
                self.counts["overflows"] += 1
                for uid, one in mounts:
                    volume = one.planned.volume
                    self._lose(uid, "removed and renamed files", _FULL_QUEUE, [volume])
                continue
            watched = container if container in self._containers else None
            yield from self._names.translate(event, watched, known, mounts, seen.at + number)

    def _mounts(self) -> Iterator[tuple[Uid, WatchedMount]]:
        for uid, container in self._containers.items():
            for one in container.mounts:
                yield uid, one

    def _volumes(self, uid: Uid) -> list[Volume]:
        return [one.planned.volume for one in self._containers[uid].mounts]

    # -- contents

    def _read(self, request: ContentRequest) -> None:
        if request.state.size > self._policy.hash_limit:
            self.counts["contents_too_large"] += 1
            self._fold.give_up(request)
            self._gap(
                request.container,
                "content of a large file",
                f"it has more than {self._policy.hash_limit} bytes",
                request.version.locator,
            )
            return
        mount = self._mount_of(request)
        if mount is None:
            self._fold.give_up(request)
            return
        namespace = self._containers[request.container].pod.namespace
        store = stores(self._policy, namespace, request.path, request.state.size)
        found = self._contents.read_small(mount, request, store=store)
        if found.answer is not None:
            self._events += self._fold.answer(request, found.answer)
            self._bytes += [found.data] if found.data is not None else []
        elif not found.queued:
            self._fold.give_up(request)
        if found.too_many:
            what, why = "content of large files", "too many were waiting to be read"
            self._gap(request.container, what, why, request.version.locator)

    def _mount_of(self, request: ContentRequest) -> VolumeMount | None:
        container = self._containers.get(request.container)
        mounts = container.mounts if container else ()
        return next((m.mount for m in mounts if m.planned.volume.key == request.volume), None)

    def _take_large(self) -> None:
        large = self._contents.finished()
        for one in large:
            if one.answer is None:
                self._fold.give_up(one.request)
            else:
                self._events += self._fold.answer(one.request, one.answer)
        if large:
            self._flush()
            for one in large:
                one.done.set()

    # -- what could not be seen

    def _report_missed(self, missed: MissedContainer) -> None:
        self._subject_of.pop(missed.uid, None)
        self.counts["missed"] += 1
        self._events += container_missed(missed, self._at, self._node.name or "")

    def _report_names(self, volume: str, what: str, why: str) -> None:
        for uid, one in list(self._mounts()):
            if one.planned.volume.key == volume:
                self._lose(uid, what, why, [one.planned.volume])

    def _report_restart(self) -> None:
        """An earlier agent did not see the end of these containers: they ran on, or ended since."""
        what, why = "accesses since the agent stopped", "it was restarted while the container ran"
        for container, whole in self._journal.watched():
            self._losses.lose(container, time.time_ns(), what, why, [whole])

    def _report_lost(self, uid: Uid, translator: AccessTranslator) -> None:
        if translator.overflowed:
            translator.overflowed = False
            self.counts["overflows"] += 1
            self._lose(uid, "accesses to files", _FULL_QUEUE, self._volumes(uid))
        if translator.unresolved:
            self.counts["unresolved"] += translator.unresolved
            translator.unresolved = 0
            why = "their directory was gone before it was identified"
            self._lose(uid, "accesses to files", why, self._volumes(uid))

    def _find_own_mounts(self) -> None:
        what, why = (
            "accesses through mounts of its own",
            "a program has a mount namespace of its own",
        )
        for uid, container in self._containers.items():
            marked = [one.planned.volume for one in container.mounts if one.layer is None]
            if marked and leaves_mounts(container.process):
                self._lose(uid, what, why, marked)

    def _lose(self, uid: Uid, what: str, why: str, volumes: Sequence[Volume]) -> None:
        self._losses.lose(uid, self._at, what, why, (one.whole for one in volumes))
        self._fold.expose([one.key for one in volumes])

    def _gap(self, uid: Uid, what: str, why: str, locator: Locator) -> None:
        self._losses.add_gap(uid, self._at, what, why, locator)

    # -- disk

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        if not self._events:
            return
        events = [*self._events, *self._losses.list_dropped(self._at)]
        try:
            self._journal.add({one.pod.uid for one in self._containers.values()}, events)
            self._spool.append(events, self._bytes)
        except Full:
            self._drop_beyond_limit()
            return
        self.counts["reported"] += len(events)
        self._events.clear()
        self._bytes.clear()
        self._losses.forget_dropped()
        self._write_status()

    def _drop_beyond_limit(self) -> None:
        """Count the events that do not fit into memory either, by container."""
        before = len(self._events)
        self._events[MAX_WAITING_EVENTS:] = self._losses.drop(self._events[MAX_WAITING_EVENTS:])
        self.counts["lost"] += before - len(self._events)

    def _write_status(self) -> None:
        """What `clew agent node` has counted, for people and for monitoring."""
        document = {**self.counts, "watched": len(self._containers)}
        try:
            write_atomically(self._status, msgspec.json.encode(document), mode=0o666)
        except OSError as error:
            _LOG.warning("cannot write %s: %s", self._status, error)

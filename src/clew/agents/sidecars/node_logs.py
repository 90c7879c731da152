"""Follow the access logs of the sidecars of all Pods on a node.

The log of a Pod is in a volume of its own below the kubelet's directory. It is opened when the Pod
is seen, and held open until all of it was read, also when Kubernetes has removed the Pod.
"""

import logging
import queue
import threading
import time
from pathlib import Path

from clew.agents.sidecars.access_log_files import LogDirectory
from clew.agents.sidecars.pod_access_log import PodLog, finish_log
from clew.agents.sidecars.pod_contexts import (
    evades_sidecar,
    has_sidecar,
    list_subjects,
    read_context,
    read_time,
)
from clew.agents.sidecars.traffic_sidecar_names import LABEL, LOG_VOLUME
from clew.agents.spool import Spool
from clew.documents.ids import Uid
from clew.errors import Full
from clew.kube.objects import Json, dig, labels_of, name_of, namespace_of, uid_of
from clew.prov.cluster.activity_uids import POD, object_uid
from clew.prov.cluster.facets import PodFacet, write_facet
from clew.prov.events import AnyEvent, Gap, Started
from clew.witness.volumes.selection import Policy, selects_requests

_LOG = logging.getLogger("clew.agents")
_POLL_SECONDS = 0.3
_ROOM_SECONDS = 5.0
_NO_SIDECAR = "the Pod was selected, and admitted without the sidecar"  # the webhook was away
_SAME_USER = "a container has the user and the group of the sidecar, so it is not redirected"
_NO_LOG = "the log of its sidecar is not, or no longer, in the directory of the kubelet"
KUBELET = Path("/var/lib/kubelet")


class NodeLogs:
    """A witness; `see` and `forget` may be called from any thread."""

    def __init__(
        self, spool: Spool, state: Path, *, policy: Policy, kubelet: Path = KUBELET
    ) -> None:
        """`state`: a directory for the checkpoints. `policy`: the log of a Pod that it does not
        select is neither read nor confirmed. `kubelet`: its directory on this node."""
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._spool = spool
        self._state = state
        self._policy = policy
        self._kubelet = kubelet
        self._changes: queue.SimpleQueue[tuple[str, Json | None]] = queue.SimpleQueue()
        self._logs: dict[str, PodLog] = {}
        self._gone: set[str] = set()
        self._reported: set[str] = set()
        self._connected_at: int | None = 0
        self.lines = 0
        self.unreadable = 0

    def see(self, pod: Json) -> None:
        """A Pod of this node appeared or changed."""
        self._changes.put((uid_of(pod), pod))

    def forget(self, uid: str) -> None:
        """A Pod of this node was removed."""
        self._changes.put((uid, None))

    def set_connected(self, connected: bool) -> None:
        """Whether the API server tells of changes. While it is away, no container counts as unknown
        for good."""
        self._connected_at = time.time_ns() if connected else None

    def forget_absent(self, present: set[Uid]) -> None:
        """Finish the logs of Pods that are not on this node any more."""
        for checkpoint in self._state.iterdir():
            pod = object_uid(checkpoint.name)
            if pod is not None and pod not in present:
                try:
                    finish_log(checkpoint, pod, self._spool)
                except Full as error:
                    _LOG.warning("finished at a later start: %s", error.message)
                    return
                checkpoint.unlink()

    def run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            if not self.read_available():
                stopping.wait(_POLL_SECONDS)
        for log in self._logs.values():
            log.close()

    def read_available(self) -> bool:
        """Read a piece of every log; False if there was nothing to read."""
        try:
            self._apply_changes()
            return sum(self._read(uid) for uid in list(self._logs)) > 0
        except Full as error:
            _LOG.warning("logs of sidecars wait: %s", error)
            self._spool.wait_for_room(_ROOM_SECONDS)
            return False

    def _apply_changes(self) -> None:
        while not self._changes.empty():
            change = self._changes.get()
            try:
                self._apply(*change)
            except Full:
                self._changes.put(change)
                raise

    def _read(self, uid: str) -> bool:
        log = self._logs[uid]
        gone = uid in self._gone
        before = log.lines, log.unreadable
        try:
            found = log.read(last=gone, connected_at=self._connected_at)
        except OSError as error:
            _LOG.error("the log of the sidecar of %s cannot be read: %s", uid, error)
            found = False
        self.lines += log.lines - before[0]
        self.unreadable += log.unreadable - before[1]
        if gone and not found:
            log.close()
            log.forget()
            del self._logs[uid]
            self._gone.discard(uid)
        return found

    def _apply(self, uid: str, pod: Json | None) -> None:
        name = object_uid(uid)
        if name is None:
            return
        if pod is None:
            self._reported.discard(uid)
            if uid in self._logs:
                self._gone.add(uid)
            return
        if not selects_requests(self._policy, list_subjects(pod)):
            if uid in self._logs:  # its labels changed
                self._logs.pop(uid).close()
            return
        if not has_sidecar(pod):
            if labels_of(pod).get(LABEL) == "true":
                self._report_unseen(uid, name, pod, _NO_SIDECAR)
            return
        if evades_sidecar(pod):
            self._report_unseen(uid, name, pod, _SAME_USER)
        if uid in self._logs or self._open(uid, name, pod):
            log = self._logs[uid]
            log.set_context(read_context(pod, log.context))

    def _open(self, uid: str, name: Uid, pod: Json) -> bool:
        """Open the log of a Pod; False if there is none yet, or not any more."""
        checkpoint = self._state / name
        volumes = self._kubelet / "pods" / uid / "volumes"
        try:
            directory = LogDirectory(volumes / "kubernetes.io~empty-dir" / LOG_VOLUME)
        except OSError:  # it is made before the first container starts
            if checkpoint.exists():
                finish_log(checkpoint, name, self._spool)
            elif read_context(pod) is not None:
                self._report_unseen(uid, name, pod, _NO_LOG)
            return False
        self._logs[uid] = PodLog(directory, checkpoint, self._spool)
        return True

    def _report_unseen(self, uid: str, name: Uid, pod: Json, why: str) -> None:
        """A Pod whose requests should be known, and are not."""
        if uid in self._reported:
            return
        began = read_time(dig(pod, "metadata", "creationTimestamp")) or 0
        labels = dict(labels_of(pod))
        facet = PodFacet(namespace=namespace_of(pod), name=name_of(pod), labels=labels)
        events: list[AnyEvent] = [
            Started(
                execution=name,
                n=0,
                at=began,
                activity=name,
                kind=POD,
                name=f"{namespace_of(pod)}/{name_of(pod)}",
                facets=write_facet(facet),
            ),
            Gap(
                execution=name,
                n=0,
                at=began,
                activity=name,
                what="requests to object stores and other traffic",
                why=why,
            ),
        ]
        self._spool.append(events)
        self._reported.add(uid)

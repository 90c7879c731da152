"""Put the file witness of a Pod together: its plan, the layers of its containers, the spool.

If the sidecar is killed, nothing says that all accesses of a container were seen until its end, and
the lineage of the Pod is that of whole volumes.
"""

import logging
import os
import shutil
import threading
from pathlib import Path

from clew.agents.node.containers.container_discovery import ContainerProcess
from clew.agents.node.containers.mount_table import MountEntry
from clew.agents.node.containers.watch_plan import (
    PlannedContainer,
    PlannedMount,
    PlannedPod,
    bound_claim,
    claims_of,
    plan_pod,
)
from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.file_witness import FileWitness
from clew.agents.node.lifecycle_events import node_started, report_gap
from clew.agents.pod.container_socket import ContainerSocket, JoinedContainer
from clew.agents.pod.file_sidecar_names import SOCKET, WRAPPER
from clew.agents.pod.pod_observer import NoEvents, PodObserver
from clew.agents.pod.served_layer import ServedVolume
from clew.agents.sidecars.pod_contexts import list_containers
from clew.agents.spool import Spool
from clew.documents.ids import Uid
from clew.errors import ClewError, NotFound
from clew.kube.objects import Json
from clew.kube.own_pod import OwnPod
from clew.prov.cluster.activity_uids import node_uid
from clew.witness.object_stores.pod_context import PodContainer
from clew.witness.tracer_binary import MOUNT
from clew.witness.volumes.selection import Policy, Subject, selects

_LOG = logging.getLogger("clew.agents")
_ASK_SECONDS = 0.5
_ASK_TIMES = 240
_EARLIER = 60 * 10**9
"""How long before its command a container may have started."""
_DELIVERY_SECONDS = 0.2
_NO_LAYER = "another volume is mounted below it, or the command ran without the wrapper"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ContainerIds:
    """Which container of the Pod has just connected: the runtime's id, from the API server."""

    def __init__(self, pod: OwnPod, uid: Uid, stopping: threading.Event) -> None:
        self._pod = pod
        self._uid = uid
        self._stopping = stopping
        self._used: set[Uid] = set()

    def find(self, name: str, at: int) -> PodContainer | None:
        """Waits until the kubelet has reported it; None if it does not."""
        for _ in range(_ASK_TIMES):
            try:
                found = self._match(self._pod.read(), name, at)
            except ClewError as error:
                _LOG.warning("%s", error.message)
                found = None
            if found is not None or self._stopping.is_set():
                return found
            self._stopping.wait(_ASK_SECONDS)
        return None

    def _match(self, pod: Json, name: str, at: int) -> PodContainer | None:
        able = [
            one
            for one in list_containers(pod, self._uid)
            if one.name == name and one.uid not in self._used and one.started > at - _EARLIER
        ]
        if not able:
            return None
        found = min(able, key=lambda one: one.started)
        self._used.add(found.uid)
        return found


class PodAgent:
    """The witness: `Witness` of `agents.agent`."""

    def __init__(self, pod: OwnPod, spool: Spool, state: Path, policy: Policy) -> None:
        self._pod = pod
        self._spool = spool
        self._policy = policy
        self._plan = read_plan(pod)
        self._stopping = threading.Event()
        self._ids = ContainerIds(pod, self._plan.uid, self._stopping)
        self._subjects: dict[Uid, Subject] = {}
        self._socket = ContainerSocket(Path(SOCKET), self._join, self._is_selected)
        self._observer = PodObserver(self._socket.is_busy)
        node = os.environ.get("NODE_NAME", "")
        boot = node_uid(node, _BOOT.read_text().strip())
        self.files = FileWitness(
            observer=self._observer,
            spool=spool,
            state=state,
            policy=policy,
            node=node_started(boot, node, 0, {}),
            subject_of=self._subjects,
        )

    def run(self, stopping: threading.Event) -> None:
        install_wrapper(Path(WRAPPER))
        self._socket.start()
        try:
            self.files.run(stopping)
        finally:
            self._stopping.set()
        # The spool ends with the Pod: what is in it is delivered now, as long as the Pod may wait.
        pause = threading.Event()
        while self._spool.list_batches():
            pause.wait(_DELIVERY_SECONDS)

    def _subject(self, name: str, user: int, group: int) -> Subject:
        plan = self._plan
        return Subject(
            namespace=plan.namespace,
            pod=plan.name,
            container=name,
            labels=plan.labels,
            addresses=plan.addresses,
            uid=user,
            gid=group,
        )

    def _is_selected(self, name: str, point: bytes, user: int, group: int) -> bool:
        subject = self._subject(name, user, group)
        planned = self._plan.containers.get(name)
        return any(one.point == point for one in self._choose(planned, subject))

    def _choose(self, planned: PlannedContainer | None, subject: Subject) -> list[PlannedMount]:
        """The claims that the policy selects."""
        return [
            one
            for one in (planned.mounts if planned else ())
            if one.claim is not None and selects(self._policy, subject, one.volume.key)
        ]

    def _join(self, joined: JoinedContainer) -> None:
        """A container's command runs: observe it under its own name."""
        planned = self._plan.containers.get(joined.name)
        found = self._ids.find(joined.name, joined.at)
        if planned is None or found is None:
            _LOG.error("the container %s is not known to Kubernetes", joined.name)
            self._report_unknown(joined)
            return
        subject = self._subject(joined.name, joined.uid, joined.gid)
        chosen = self._choose(planned, subject)
        container = WatchedContainer(
            uid=found.uid,
            pod=self._plan,
            planned=planned,
            process=ContainerProcess(0, [], False, found.started, b"", 0),
            watched_at=found.started,  # its command has waited for the layers
            group=NoEvents(),
        )
        volumes = {one.point: one for one in joined.volumes}
        general = joined.failures.get(b"")
        for mount in chosen:
            volume = volumes.get(mount.point)
            if volume is None:
                why = joined.failures.get(mount.point) or general or _NO_LAYER
                container.fail(mount, why)
                continue
            below = ServedVolume(volume.root, prefix=mount.prefix)
            entry = MountEntry(0, b"", b"", mount.point, "fuse", mount.read_only)
            container.mounts.append(WatchedMount(mount, below, entry, volume.layer))
        self._subjects[found.uid] = subject
        self._observer.add(container, joined.process)

    def _report_unknown(self, joined: JoinedContainer) -> None:
        what = f"accesses of the container {joined.name}"
        why = "Kubernetes did not say which container it was"
        self._spool.append([report_gap(self._plan.uid, joined.at, what, why)])


def read_plan(pod: OwnPod) -> PlannedPod:
    """What the Pod mounts. Its claims are bound, or it would not run."""
    found = pod.read()
    claims = {}
    for name in claims_of(found):
        claim = pod.read_claim(name)
        bound = bound_claim(claim, None) if claim else None
        if bound is not None:
            claims[name] = bound
    plan = plan_pod(found, claims, machine="")
    if plan is None:
        raise NotFound(f"the Pod {pod.name} has no uid")
    return plan


def install_wrapper(path: Path) -> None:
    """Put the program that wraps commands where the containers find it."""
    part = path.with_suffix(".part")
    shutil.copyfile(MOUNT, part)
    part.chmod(0o755)
    part.rename(path)

"""Containers that start: from the appearance of their cgroup until it is known what they are.

Each ends in one of three ways: it is known, and the observer marks it; it is the sandbox of a Pod;
or it ended, or stayed unknown for too long. The last is reported as missed, as soon as its Pod is
known, with all volumes that the policy may have selected.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from clew.agents.node.containers.container_discovery import (
    ContainerFound,
    ContainerProcess,
    read_process,
)
from clew.agents.node.containers.mount_table import find_container
from clew.agents.node.containers.watch_plan import Choice, PlannedContainer, PlannedPod
from clew.agents.node.observation_batch import MissedContainer
from clew.documents.ids import Uid
from clew.witness.volumes.file_versions import pod_of

_LOG = logging.getLogger("clew.agents")
_STARTING_SECONDS = 30.0
"""How long to wait until the API server names the Pod of a container."""
_MISSED_SECONDS = 600.0
"""The same for a container that was not watched, which is only to be reported."""

FindPod = Callable[[Uid], PlannedPod | None]
"""The Pod with this uid, once it is known."""
Choose = Callable[[PlannedPod, str, bytes, int | None], Choice]
"""Which volumes of a container (its name, its cgroup, its first process; None: it has ended) are
watched."""


class KnownContainer(NamedTuple):
    """A container that starts, and what is to be watched of it."""

    uid: Uid
    process: ContainerProcess
    pod: PlannedPod
    planned: PlannedContainer
    chosen: Choice


@dataclass
class _Start:
    found: ContainerFound
    limit: float
    """When to give up."""
    name: str = ""
    """Empty while it is not known."""


class ContainerStarts:
    def __init__(self, find_pod: FindPod, choose: Choose) -> None:
        self._find_pod = find_pod
        self._choose = choose
        self._starting: dict[Uid, _Start] = {}
        self._missed: dict[Uid, _Start] = {}

    def __bool__(self) -> bool:
        """Whether a container starts now."""
        return bool(self._starting)

    def begin(self, found: ContainerFound) -> None:
        self._starting[found.uid] = _Start(found, time.monotonic() + _STARTING_SECONDS)

    def end(self, uid: Uid) -> None:
        """The container is marked, or need not be."""
        del self._starting[uid]

    def miss(self, uid: Uid) -> bool:
        """A container ended, or is given up; whether it was not marked before."""
        missed = self._starting.pop(uid, None)
        if missed is None:
            return False
        missed.limit = time.monotonic() + _MISSED_SECONDS
        self._missed[uid] = missed
        return True

    def list_overdue(self) -> list[Uid]:
        now = time.monotonic()
        return [uid for uid, start in self._starting.items() if now > start.limit]

    def find_known(self) -> Iterator[KnownContainer]:
        """Those of which everything is known. They are looked at again until `end`."""
        for uid, start in list(self._starting.items()):
            process = read_process(start.found.cgroup)
            if process is None:
                continue
            named = find_container(process.mounts)
            if named is None:
                if process.running and process.prepared:  # the sandbox of a Pod
                    self.end(uid)
                continue
            start.name = named.name
            pod = self._find_pod(named.pod)
            planned = pod.containers.get(named.name) if pod is not None else None
            if pod is None or planned is None:  # the API server names them soon
                continue
            chosen = self._choose(pod, named.name, start.found.cgroup, process.pid)
            yield KnownContainer(uid, process, pod, planned, chosen)

    def take_missed(self) -> Iterator[MissedContainer]:
        """Those that were missed, and that the policy may have selected."""
        for uid, missed in list(self._missed.items()):
            pod = self._find_pod(pod_of(uid))
            if pod is None:
                if time.monotonic() > missed.limit:
                    _LOG.warning("the container %s was not watched: its Pod is not known", uid)
                    del self._missed[uid]
                continue
            del self._missed[uid]
            name = missed.name or pod.names.get(uid.partition("/")[2], "")
            if not name and pod.has_all_names:  # the sandbox of the Pod
                continue
            names = [name] if name in pod.containers else pod.containers
            chosen = [self._choose(pod, name, missed.found.cgroup, None) for name in names]
            wholes = {one.volume.whole for choice in chosen for one in choice.mounts}
            unseen = [one for choice in chosen for one in choice.unseen]
            if wholes or unseen:
                planned = pod.containers.get(name)
                yield MissedContainer(uid, pod, planned, wholes, unseen)

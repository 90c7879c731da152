"""The back end of notebooks, TensorBoards and volumes, and how the proxy finds them.

There are three sources: a file of addresses, the cluster, and this machine, where the server itself
starts and ends them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.documents.workloads.workload import Culling
from clew.kube.objects import Key
from clew.project_directory import ProjectDirectory
from clew.server.proxy.targets import KINDS, Resolver, TargetFile, TargetKey
from clew.server.proxy.usage import UsageRecorder
from clew.workloads.backend import Backend
from clew.workloads.local.local_backend import LocalBackend


@dataclass(frozen=True)
class WorkloadSource:
    backend: Backend | None = None
    """None: the server does not show or change them."""
    resolver: Resolver | None = None
    """None: the server proxies nothing."""
    local: LocalBackend | None = None
    """The back end that starts and ends with the server."""

    def start(self, usage: UsageRecorder) -> None:
        """`usage`: tells when something was used last, so that it can be stopped when idle."""
        if self.local is not None:
            self.local.start(lambda: {_key(key): at for key, at in usage.last_uses().items()})

    def begin_close(self) -> None:
        """Begin to end what runs here, without waiting for it."""
        if self.local is not None:
            self.local.begin_close()

    def close(self) -> None:
        if self.local is not None:
            self.local.close()


def _key(key: TargetKey) -> Key:
    return Key(KINDS[key.kind], key.namespace, key.name)


NOTHING = WorkloadSource()


def from_file(path: Path) -> WorkloadSource:
    """Proxy what a file names."""
    return WorkloadSource(resolver=TargetFile(path.absolute()))


def from_cluster(namespaces: Sequence[str], culling: Culling) -> WorkloadSource:
    """The workloads of the cluster. `culling`: what the operator is configured to do."""
    from clew.kube.backend.resource_backend import ResourceBackend
    from clew.server.proxy.cluster_targets import ClusterTargets

    backend = ResourceBackend(user="clew", namespaces=namespaces, culling=culling)
    return WorkloadSource(backend, ClusterTargets())


def from_this_machine(directory: ProjectDirectory, idle_minutes: float | None) -> WorkloadSource:
    """Child processes of the server. Raises Busy if another server runs those of this project."""
    from clew.server.proxy.local_targets import LocalTargets

    backend = LocalBackend(directory, idle_minutes=idle_minutes)
    return WorkloadSource(backend, LocalTargets(backend), backend)

"""What an operator is told: upstream's settings under their names, and the few of our own.

The command line reads them, from its options or from the environment; here they are values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase

from clew.kube.objects import Json

GATEWAY = "istio-system/istio=ingressgateway"
"""The Pods of Istio's gateway, where Istio and Kubeflow put them."""


@dataclass(frozen=True)
class Istio:
    gateway: str = "kubeflow/kubeflow-gateway"
    host: str = "*"


@dataclass(frozen=True)
class Culling:
    idle: timedelta = timedelta(days=1)
    period: timedelta = timedelta(minutes=1)
    through_api: bool = False
    """Ask servers through the API server, as from outside of the cluster one must."""
    prometheus: str | None = None
    """Where Istio's metrics are."""


@dataclass(frozen=True)
class Options:
    namespaces: tuple[str, ...] = ()
    """Names, or patterns of names, of those where it works; without any, in all."""
    istio: Istio | None = None
    """Where a VirtualService leads to each server; None makes none."""
    cluster_domain: str = "cluster.local"
    fs_group: bool = True
    """A notebook without a security context, and our viewer, get the group of their volumes."""
    tensorboard_image: str = "docker.io/clew/tensorboard"
    rwo_scheduling: bool = True
    """A TensorBoard goes where the volume is that only one node can hold."""
    viewer_image: str = "docker.io/clew/clew"
    viewer_pod: Json | None = field(default=None, hash=False)
    """What a viewer without a Pod of its own is made of instead of our file browser."""
    culling: Culling | None = None
    allow_from: tuple[str, ...] = ()
    """Who else than the server and the operator may connect to the Pods: see `policies`."""
    own_namespace: str = "clew"
    """Where the operator and the server run."""
    access_key: str = field(default="", repr=False)
    """What access tokens are derived from; without it, Pods are given none."""

    @property
    def everywhere(self) -> bool:
        """Whether all namespaces are watched: some may come that a pattern means."""
        return not self.namespaces or any("*" in name for name in self.namespaces)

    def heeds(self, namespace: str) -> bool:
        named = (fnmatchcase(namespace, name) for name in self.namespaces)
        return not self.namespaces or any(named)

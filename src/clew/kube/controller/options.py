"""The settings of the operator: upstream's under their names, and a few of our own.

`cli` reads them from options or from the environment.
"""

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
    """Ask servers through the API server: needed if the operator runs outside the cluster."""
    prometheus: str | None = None
    """URL of the Prometheus that has Istio's metrics."""


@dataclass(frozen=True)
class Options:
    namespaces: tuple[str, ...] = ()
    """Names or patterns of the namespaces where it works; empty: all."""
    istio: Istio | None = None
    """The gateway and host of VirtualServices; None: none are made."""
    cluster_domain: str = "cluster.local"
    fs_group: bool = True
    """Set fsGroup on notebooks without a security context, and on our viewer."""
    tensorboard_image: str = "docker.io/clew/tensorboard"
    rwo_scheduling: bool = True
    """Run a TensorBoard on the node that has its ReadWriteOnce volume mounted."""
    viewer_image: str = "docker.io/clew/clew"
    viewer_pod: Json | None = field(default=None, hash=False)
    """The Pod of viewers without a podSpec; None: our file browser."""
    culling: Culling | None = None
    allow_from: tuple[str, ...] = ()
    """Peers that may connect to the Pods besides server and operator: see `network_policies`."""
    training_jobs: bool = True
    """Manage TFJobs and PyTorchJobs: not where Kubeflow's training operator does."""
    gang_scheduler: str = ""
    """The scheduler that places all Pods of a training job together; empty: there is none."""
    pytorch_init_image: str = "docker.io/library/alpine:3.10"
    """The image in which the workers of a PyTorchJob wait for its master; it needs nslookup."""
    custom_cluster_domain: str = ""
    """Follows the names of Services in TF_CONFIG."""
    remove_reproductions: bool = False
    """Remove what `clew reproduce` commands left that were killed."""
    own_namespace: str = "clew"
    """The namespace of the operator and the server."""
    access_key: str = field(default="", repr=False)
    """Access tokens are derived from it; empty: Pods expect no token."""

    @property
    def all_namespaces(self) -> bool:
        """Whether all namespaces are watched: with a pattern too, since new ones may match it."""
        return not self.namespaces or any("*" in name for name in self.namespaces)

    def watches(self, namespace: str) -> bool:
        named = (fnmatchcase(namespace, name) for name in self.namespaces)
        return not self.namespaces or any(named)

"""The paths, names and addresses of a cluster, which all follow from its folder.

What exists outside the namespaces is named after the folder, so that after any crash it can be
found and removed with nothing but the path of the folder.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

NODES = ("node1", "node2")
RUN = Path("/run/clew")  # inside: sockets, whose paths must be short


@dataclass(frozen=True)
class Node:
    name: str
    folder: Path
    address: str
    pods: str  # the network its Pods get addresses from

    @property
    def containerd(self) -> str:
        return f"{RUN}/{self.name}/containerd.sock"


@dataclass(frozen=True)
class Cluster:
    folder: Path  # absolute
    network: int = 0  # the second byte of every address: 10.NETWORK.0.0/16 is the cluster's

    @cached_property
    def mark(self) -> str:
        """The name of what exists outside the namespaces; short enough for a network interface."""
        return f"clew{hashlib.sha256(bytes(self.folder)).hexdigest()[:8]}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    def address(self, third: int, fourth: int) -> str:
        return f"10.{self.network}.{third}.{fourth}"

    @property
    def everything(self) -> str:
        return f"{self.address(0, 0)}/16"

    @property
    def outside(self) -> str:
        """The address of this machine's end of the veth pair."""
        return self.address(0, 1)

    @property
    def control(self) -> str:
        return self.address(0, 2)

    @property
    def dns(self) -> str:
        return self.address(0, 10)

    @property
    def services(self) -> str:
        return f"{self.address(96, 0)}/20"

    @property
    def server(self) -> str:
        return f"https://{self.control}:6443"

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(
            Node(name, self.folder / name, self.address(0, 10 + n), f"{self.address(n, 0)}/24")
            for n, name in enumerate(NODES, start=1)
        )

"""Network policies, which Kubernetes itself only stores: Calico's Felix enforces them.

Felix handles the Pods of one node, and the nodes share one network namespace, in which two
Felixes would undo each other's rules. So it enforces policies for the Pods of the first node; a
test of a policy puts the Pods it protects there. Calico's network plugin connects them, since Felix
knows a Pod's interface by the name that this plugin gives it.
"""

from typing import Any

from tools.cluster.addons import apply
from tools.cluster.binaries import program_directory
from tools.cluster.layout import Cluster, Node
from tools.cluster.namespaces import run_inside
from tools.cluster.processes import start, wait_for

GROUP = "crd.projectcalico.org"
# What Felix lists, and whether it is in namespaces. Calico's own definitions also check what is
# written, which is nothing here but the one object below.
KINDS = {
    **dict.fromkeys(
        (
            *("BGPConfiguration", "BGPFilter", "BGPPeer", "BlockAffinity", "CalicoNodeStatus"),
            *("ClusterInformation", "FelixConfiguration", "GlobalNetworkPolicy"),
            *("GlobalNetworkSet", "HostEndpoint", "IPAMBlock", "IPAMConfig", "IPAMHandle"),
            *("IPPool", "IPReservation", "KubeControllersConfiguration"),
        ),
        "Cluster",
    ),
    **dict.fromkeys(("NetworkPolicy", "NetworkSet"), "Namespaced"),
}
HEALTH = 9099


def enforced_on(cluster: Cluster) -> Node:
    return cluster.nodes[0]


def plugin(cluster: Cluster, node: Node, *, mtu: int, ipam: dict[str, object]) -> dict[str, object]:
    """Calico's network plugin, as the network of a node's Pods."""
    return {
        "type": "calico",
        "datastore_type": "kubernetes",
        "kubernetes": {"kubeconfig": str(cluster.kubeconfig)},
        "nodename": node.name,
        "nodename_file_optional": True,
        "policy": {"type": "k8s"},
        "mtu": mtu,
        "ipam": ipam,
        "log_level": "Warning",
        "log_file_path": str(cluster.logs / "calico.log"),
    }


def plugin_folder() -> str:
    return str(program_directory("calico"))


def define_kinds(cluster: Cluster) -> None:
    apply(cluster, *(_definition(kind, scope) for kind, scope in KINDS.items()))


def start_enforcing(cluster: Cluster) -> None:
    """After `define_kinds`. Does not wait until Felix is ready: see `await_enforcing`."""
    apply(
        cluster,
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterInformation",
            "metadata": {"name": "default"},
            "spec": {"datastoreReady": True, "clusterType": "k8s"},
        },
    )
    settings = {
        "DATASTORETYPE": "kubernetes",
        "FELIXHOSTNAME": enforced_on(cluster).name,
        "DEFAULTENDPOINTTOHOSTACTION": "ACCEPT",
        "IPTABLESBACKEND": "nft",  # as Debian's iptables, by which kube-proxy works
        "IGNORELOOSERPF": "true",
        "IPV6SUPPORT": "false",
        "XDPENABLED": "false",
        "USAGEREPORTINGENABLED": "false",
        "HEALTHENABLED": "true",
        "HEALTHPORT": str(HEALTH),
        "LOGFILEPATH": "none",
        "LOGSEVERITYSYS": "none",
        "LOGSEVERITYSCREEN": "Warning",
    }
    variables = [f"FELIX_{name}={value}" for name, value in settings.items()]
    variables.append(f"KUBECONFIG={cluster.kubeconfig}")
    start(cluster, "calico-felix", "calico-felix", variables=variables)


def await_enforcing(cluster: Cluster) -> None:
    url = f"http://localhost:{HEALTH}/readiness"
    script = f"busybox wget -q -O- {url} >/dev/null 2>&1 && echo yes || :"
    wait_for(cluster, "calico-felix", lambda: run_inside(cluster, "sh", "-c", script) != "")


def _definition(kind: str, scope: str) -> dict[str, Any]:
    plural = f"{kind.lower().removesuffix('y')}ies" if kind.endswith("y") else f"{kind.lower()}s"
    plural = {"CalicoNodeStatus": "caliconodestatuses"}.get(kind, plural)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }

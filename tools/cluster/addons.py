"""The DNS server, the volume provisioner, and Calico's Felix, which enforces network policies.

They run as programs beside the control plane, not in Pods, since there are no images of them here.
Felix handles the Pods of one node, and the nodes share one network namespace, in which two Felixes
would undo each other's rules. So it enforces policies for the Pods of the first node; a test of a
policy puts the Pods it protects there. Calico's network plugin connects them, since Felix knows a
Pod's interface by the name that this plugin gives it.
"""

import json
from typing import Any

from tools.cluster.binaries import program_directory, search_path
from tools.cluster.commands import run
from tools.cluster.images import BUSYBOX
from tools.cluster.layout import Cluster, Node
from tools.cluster.namespaces import run_inside
from tools.cluster.network import nameservers
from tools.cluster.processes import start, wait_for

NAMESPACE = "local-path-storage"

COREFILE = """\
.:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 5
    }}
    {elsewhere}
    cache 5
    reload
}}
"""

HELPER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "helper-pod"},
    "spec": {
        "containers": [
            {"name": "helper-pod", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent"},
        ]
    },
}


def write_resolv_conf(cluster: Cluster) -> None:
    """The nameservers of Pods with `dnsPolicy: Default`."""
    lines = "".join(f"nameserver {server}\n" for server in nameservers())
    (cluster.folder / "resolv.conf").write_text(lines)


def start_dns(cluster: Cluster) -> None:
    corefile = cluster.folder / "Corefile"
    servers = " ".join(nameservers())
    corefile.write_text(
        COREFILE.format(
            address=cluster.dns,
            kubeconfig=cluster.kubeconfig,
            elsewhere=f"forward . {servers}" if servers else "",
        )
    )
    start(cluster, "coredns", "coredns", "-conf", str(corefile))


def start_volumes(cluster: Cluster) -> None:
    """A default StorageClass whose volumes are folders of the node that first uses them."""
    folders = [{"node": node.name, "paths": [f"{node.folder}/volumes"]} for node in cluster.nodes]
    settings = cluster.folder / "volumes.json"
    settings.write_text(json.dumps({"nodePathMap": folders}, indent=1))
    helper = cluster.folder / "volumes-helper.json"
    helper.write_text(json.dumps(HELPER, indent=1))
    apply(cluster, *_volume_objects(settings.read_text(), helper.read_text()))
    start(
        cluster,
        "local-path-provisioner",
        *("local-path-provisioner", "start", f"--config={settings}"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={NAMESPACE}",
        f"--helper-image={BUSYBOX}",
        f"--helper-pod-file={helper}",
        f"--service-account-name={NAMESPACE}",
        f"--configmap-name={NAMESPACE}",
    )


def apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl(cluster, "apply", "-f", "-", given=json.dumps(listed))


def kubectl(cluster: Cluster, *words: str, given: str = "") -> str:
    """Run kubectl from outside the namespaces, as a user does."""
    return run(
        *("kubectl", "--kubeconfig", str(cluster.kubeconfig), *words),
        given=given,
        environment={"PATH": search_path(), "HOME": str(cluster.folder)},
    )


def _volume_objects(settings: str, helper: str) -> list[dict[str, Any]]:
    def named(kind: str, **more: Any) -> dict[str, Any]:
        about = {"name": NAMESPACE, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": kind, "metadata": about, **more}

    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        named("ServiceAccount"),
        named(
            "ConfigMap",
            data={
                "config.json": settings,
                "helperPod.yaml": helper,
                "setup": '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n',
                "teardown": '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n',
            },
        ),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": "local-path",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "rancher.io/local-path",
            "volumeBindingMode": "WaitForFirstConsumer",
            "reclaimPolicy": "Delete",
        },
    ]


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

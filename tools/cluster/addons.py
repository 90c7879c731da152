"""The DNS server and the volume provisioner.

Both run as programs beside the control plane, not in Pods, since there are no images of them here.
"""

import json
from typing import Any

from tools.cluster.binaries import search_path
from tools.cluster.commands import run
from tools.cluster.images import BUSYBOX
from tools.cluster.layout import Cluster
from tools.cluster.network import nameservers
from tools.cluster.processes import start

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

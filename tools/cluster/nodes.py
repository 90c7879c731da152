"""A node: a containerd and a kubelet with folders, sockets, cgroups and Pod network of their own.

Pods are connected point to point and everything between them is routed, on one node or across two:
so Services work alike everywhere, whatever the kernel does with bridges.
"""

import json
from pathlib import Path

from tools.cluster import addons
from tools.cluster.binaries import search_path
from tools.cluster.certificates import kubeconfig
from tools.cluster.commands import ClusterError
from tools.cluster.images import PAUSE, Image
from tools.cluster.layout import RUN, Cluster, Node
from tools.cluster.namespaces import run_inside
from tools.cluster.network import mtu
from tools.cluster.processes import start, wait_for

CGROUPS = Path("/sys/fs/cgroup")

CONTAINERD = """\
version = 3
root = "{folder}/containerd"
state = "{run}/{name}/containerd"

[grpc]
address = "{socket}"

[ttrpc]
address = "{socket}.ttrpc"

[plugins."io.containerd.nri.v1.nri"]
disable = true  # its socket has one name for all nodes, and they would both bind it

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"

[plugins."io.containerd.cri.v1.runtime"]
# Lowering the score takes a capability that containers and small virtual machines lack.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni", "{plugins}"]
conf_dir = "{folder}/cni"
"""


def start_containerd(cluster: Cluster, node: Node) -> None:
    (node.folder / "cni").mkdir(parents=True)
    network = json.dumps(_pod_network(cluster, node), indent=1)
    (node.folder / "cni" / "pods.conflist").write_text(network)
    settings = node.folder / "containerd.toml"
    settings.write_text(
        CONTAINERD.format(
            folder=node.folder,
            run=RUN,
            name=node.name,
            socket=node.containerd,
            pause=PAUSE,
            plugins=addons.plugin_folder(),
        )
    )
    start(cluster, f"containerd-{node.name}", "containerd", "--config", str(settings))


def start_kubelet(cluster: Cluster, node: Node) -> None:
    name = f"containerd-{node.name}"
    wait_for(cluster, name, lambda: _is_listening(cluster, node))
    for folder in cgroups(cluster):
        (folder / node.name).mkdir(parents=True, exist_ok=True)
    # Its sockets are in there as well: by this name their paths are short, wherever the folder is.
    root, kept = f"{RUN}/{node.name}/kubelet", node.folder / "kubelet"
    kept.mkdir()
    run_inside(cluster, "mkdir", root)
    run_inside(cluster, "mount", "--bind", str(kept), root)
    settings = node.folder / "kubelet.json"
    settings.write_text(json.dumps(_kubelet(cluster, node), indent=1))
    start(
        cluster,
        f"kubelet-{node.name}",
        "kubelet",
        f"--config={settings}",
        f"--kubeconfig={kubeconfig(cluster, node.name)}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--root-dir={root}",
        f"--cert-dir={root}/pki",
    )


def import_image(cluster: Cluster, node: Node, image: Image) -> None:
    """An archive is named after what is in it, so it is imported once."""
    mark = node.folder / "imported" / image.archive.name
    if not mark.exists():
        ctr(cluster, node, "images", "import", "--local", str(image.archive))
        mark.parent.mkdir(exist_ok=True)
        mark.touch()


def ctr(cluster: Cluster, node: Node, *words: str) -> str:
    """containerd's own client, in the namespace where Kubernetes keeps its containers."""
    client = ("env", f"PATH={search_path()}", "ctr", "--address", node.containerd)
    return run_inside(cluster, *client, "--namespace", "k8s.io", *words)


def cgroups(cluster: Cluster) -> list[Path]:
    """The cgroup of the cluster in every hierarchy."""
    hierarchies = [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]
    return [hierarchy / cluster.mark for hierarchy in hierarchies]


def check_cgroups(root: Path = CGROUPS) -> None:
    """Nodes were never tried where there is but one hierarchy, in which each group must hand the
    controllers down: better said at once than by a kubelet that does not come up."""
    if (root / "cgroup.controllers").exists():
        raise ClusterError(
            f"nodes need cgroups of version 1, and {root} is of version 2: boot with "
            "systemd.unified_cgroup_hierarchy=0, or test on another cluster by naming it in "
            "KUBECONFIG (docs/how-to/test-on-a-cluster.md)"
        )


def _is_listening(cluster: Cluster, node: Node) -> bool:
    return run_inside(cluster, "sh", "-c", f"test -S {node.containerd} && echo yes || :") != ""


def _pod_network(cluster: Cluster, node: Node) -> dict[str, object]:
    width = int(mtu())
    ipam: dict[str, object] = {
        "type": "host-local",
        "subnet": node.pods,
        "dataDir": f"{node.folder}/addresses",
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    first: dict[str, object] = {"type": "ptp", "mtu": width, "ipam": ipam}
    if node == addons.enforced_on(cluster):
        first = addons.plugin(cluster, node, mtu=width, ipam=ipam)
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [first, ports]}


def _kubelet(cluster: Cluster, node: Node) -> dict[str, object]:
    certificates = cluster.certificates
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{certificates}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{certificates}/{node.name}.crt",
        "tlsPrivateKeyFile": f"{certificates}/{node.name}.key",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cluster.mark}/{node.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{node.containerd}",
        "clusterDNS": [cluster.dns],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{cluster.folder}/resolv.conf",
        "podLogsDir": f"{node.folder}/pod-logs",
        "volumePluginDir": f"{node.folder}/volume-plugins",
        # The machine's disk and memory are for others as well, and an image that is thrown away
        # cannot be fetched again.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "maxPods": 250,
        "serializeImagePulls": False,
        "nodeStatusUpdateFrequency": "5s",
        "nodeLeaseDurationSeconds": 12,
    }

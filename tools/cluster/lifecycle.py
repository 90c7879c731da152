"""Start a cluster in a folder, from nothing or after a crash, and remove it."""

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tools.cluster import binaries, images
from tools.cluster.addons import (
    await_enforcing,
    define_kinds,
    kubectl,
    start_dns,
    start_enforcing,
    start_volumes,
    write_resolv_conf,
)
from tools.cluster.certificates import issue_certificates
from tools.cluster.commands import ClusterError, report, step
from tools.cluster.control_plane import is_api_ready, start_control_plane
from tools.cluster.layout import Cluster, Node
from tools.cluster.namespaces import create_namespaces, destroy_namespaces, holder_pid
from tools.cluster.network import connect_network, disconnect_network, free_network
from tools.cluster.nodes import (
    cgroups,
    check_cgroups,
    import_image,
    start_containerd,
    start_kubelet,
)
from tools.cluster.processes import is_running, program_names, restart, wait_for
from tools.cluster.shared_state import lock_machine

PATIENCE = 10.0  # seconds


def take_down(folder: Path) -> None:
    with lock_machine(), step("the cluster is down"):
        remove_cluster(folder)


def remove_cluster(folder: Path) -> None:
    cluster = Cluster(folder)
    destroy_namespaces(cluster)
    disconnect_network(cluster)
    for group in cgroups(cluster):
        _remove_cgroup(group)
    _remove_folder(folder)


def _remove_cgroup(group: Path) -> None:
    """Children first. The kernel may need a moment to release the last process."""
    until = time.monotonic() + PATIENCE
    for path, _, _ in os.walk(group, topdown=False):
        while Path(path).exists():
            try:
                Path(path).rmdir()
            except OSError as error:
                if time.monotonic() > until:
                    within = " ".join(Path(path, "cgroup.procs").read_text().split())
                    raise ClusterError(
                        f"{path} stays, with the processes {within or error}"
                    ) from None
                time.sleep(0.05)


def _remove_folder(folder: Path) -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    within = [mount for mount in mounted if mount.startswith(f"{folder}/")]
    if within:
        raise ClusterError(f"something is mounted in {folder}, so it stays: {', '.join(within)}")
    if folder.exists():
        shutil.rmtree(folder)


def bring_up(folder: Path, *, bare: bool = False) -> Cluster:
    if os.geteuid() != 0:
        raise ClusterError("containers, mounts and networks take root: sudo make cluster")
    check_cgroups()
    with step("binaries"):
        binaries.build_missing()
    with step("images"):
        built = images.build_images(bare=bare)
    with lock_machine():
        cluster = _running_cluster(folder) or _create_cluster(folder)
        with step("images imported on every node"):
            _import_images(cluster, built)
        with step("nodes ready"):
            for node in cluster.nodes:
                wait_for(cluster, f"kubelet-{node.name}", partial(_is_node_ready, cluster, node))
            wait_for(cluster, "kube-controller-manager", partial(_admits_pods, cluster))
            await_enforcing(cluster)
    return cluster


def find_cluster(folder: Path) -> Cluster | None:
    """The cluster of a folder, whether it runs or not."""
    try:
        return Cluster(folder, json.loads((folder / "cluster.json").read_text())["network"])
    except FileNotFoundError:
        return None


def _running_cluster(folder: Path) -> Cluster | None:
    """The cluster, if it runs; programs that have ended are started again."""
    cluster = find_cluster(folder)
    if cluster is None or holder_pid(cluster) is None or not _complete_marker(cluster).exists():
        return None
    for name in program_names(cluster):
        if not is_running(cluster, name):
            with step(f"started {name} again"):
                restart(cluster, name)
    wait_for(cluster, "kube-apiserver", lambda: is_api_ready(cluster))
    return cluster


def _complete_marker(cluster: Cluster) -> Path:
    """Exists once everything was started; a cluster without it is created again."""
    return cluster.folder / "complete"


def _create_cluster(folder: Path) -> Cluster:
    with step("cleared away whatever was left"):  # there may be much, although no folder
        remove_cluster(folder)
    cluster = Cluster(folder, free_network())
    for needed in (folder, cluster.logs):
        needed.mkdir(parents=True)
    (folder / "cluster.json").write_text(json.dumps({"network": cluster.network}))
    with step("certificates"):
        issue_certificates(cluster)
    with step("namespaces and network"):
        create_namespaces(
            cluster, seen=(folder, binaries.cache_directory().parent, Path(__file__).parent)
        )
        connect_network(cluster)
        write_resolv_conf(cluster)
    with step("control plane"):
        for node in cluster.nodes:
            start_containerd(cluster, node)
        start_control_plane(cluster)
        define_kinds(cluster)
    with step("nodes, names, volumes and network policies"):
        for node in cluster.nodes:
            start_kubelet(cluster, node)
        start_dns(cluster)
        start_volumes(cluster)
        start_enforcing(cluster)
    _complete_marker(cluster).touch()
    return cluster


def add_image(folder: Path, name: str, file: Path) -> None:
    """Build an image, and give it to every node of a running cluster."""
    cluster = find_cluster(folder)
    if cluster is None:
        raise ClusterError(f"no cluster runs in {folder}: make cluster")
    _import_images(cluster, (images.build_image(name, file),))


def _import_images(cluster: Cluster, built: tuple[images.Image, ...]) -> None:
    pairs = [(node, image) for image in built for node in cluster.nodes]
    with ThreadPoolExecutor(len(cluster.nodes)) as pool:
        for done in [pool.submit(import_image, cluster, *pair) for pair in pairs]:
            done.result()


def _is_node_ready(cluster: Cluster, node: Node) -> bool:
    condition = '{.status.conditions[?(@.type=="Ready")].status}'
    query = ("get", "node", node.name, "--ignore-not-found", "-o", f"jsonpath={condition}")
    return kubectl(cluster, *query) == "True"


def _admits_pods(cluster: Cluster) -> bool:
    """Pods are rejected until their namespace has its default service account."""
    query = ("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name")
    return kubectl(cluster, *query) != ""


def report_up(cluster: Cluster) -> None:
    kubeconfig = cluster.kubeconfig
    report(f"Kubernetes {binaries.KUBERNETES} is up: export KUBECONFIG={kubeconfig}")

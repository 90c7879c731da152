"""Up: one cluster in one folder, from nothing or from whatever a crash left there."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tools.cluster import binaries, images
from tools.cluster.addons import kubectl, resolv_conf, start_dns, start_volumes
from tools.cluster.certificates import issue
from tools.cluster.control import answers, start_control
from tools.cluster.holding import hold, holder
from tools.cluster.machine import turn
from tools.cluster.network import free_network, plug_in
from tools.cluster.nodes import import_image, need_cgroups, start_containerd, start_kubelet
from tools.cluster.places import Cluster, Node
from tools.cluster.policies import await_enforcing, define_kinds, start_enforcing
from tools.cluster.processes import lives, names, restart, wait_for
from tools.cluster.saying import Failed, say, step
from tools.cluster.taking_down import clear_away


def up(folder: Path, *, bare: bool = False) -> Cluster:
    if os.geteuid() != 0:
        raise Failed("containers, mounts and networks take root: sudo make cluster")
    need_cgroups()
    with step("binaries"):
        binaries.provide()
    with step("images"):
        built = images.provide(bare=bare)
    with turn():
        cluster = _there(folder) or _new(folder)
        with step("images imported on every node"):
            _import(cluster, built)
        with step("nodes ready"):
            for node in cluster.nodes:
                wait_for(cluster, f"kubelet-{node.name}", partial(_ready, cluster, node))
            wait_for(cluster, "kube-controller-manager", partial(_admits_pods, cluster))
            await_enforcing(cluster)
    return cluster


def find(folder: Path) -> Cluster | None:
    """The cluster that a folder holds, alive or not."""
    try:
        return Cluster(folder, json.loads((folder / "cluster.json").read_text())["network"])
    except FileNotFoundError:
        return None


def _there(folder: Path) -> Cluster | None:
    """A cluster that came up and lives, with the programs it lost started again."""
    cluster = find(folder)
    if cluster is None or holder(cluster) is None or not _complete(cluster).exists():
        return None
    for name in names(cluster):
        if not lives(cluster, name):
            with step(f"started {name} again"):
                restart(cluster, name)
    wait_for(cluster, "kube-apiserver", lambda: answers(cluster))
    return cluster


def _complete(cluster: Cluster) -> Path:
    """There once everything was started: before, a cluster is not worth repairing."""
    return cluster.folder / "complete"


def _new(folder: Path) -> Cluster:
    with step("cleared away whatever was left"):  # there may be much, although no folder
        clear_away(folder)
    cluster = Cluster(folder, free_network())
    for needed in (folder, cluster.logs):
        needed.mkdir(parents=True)
    (folder / "cluster.json").write_text(json.dumps({"network": cluster.network}))
    with step("certificates"):
        issue(cluster)
    with step("namespaces and network"):
        hold(cluster, seen=(folder, binaries.cache().parent, Path(__file__).parent))
        plug_in(cluster)
        resolv_conf(cluster)
    with step("control plane"):
        for node in cluster.nodes:
            start_containerd(cluster, node)
        start_control(cluster)
        define_kinds(cluster)
    with step("nodes, names, volumes and network policies"):
        for node in cluster.nodes:
            start_kubelet(cluster, node)
        start_dns(cluster)
        start_volumes(cluster)
        start_enforcing(cluster)
    _complete(cluster).touch()
    return cluster


def _import(cluster: Cluster, built: tuple[images.Image, ...]) -> None:
    pairs = [(node, image) for image in built for node in cluster.nodes]
    with ThreadPoolExecutor(len(cluster.nodes)) as pool:
        for done in [pool.submit(import_image, cluster, *pair) for pair in pairs]:
            done.result()


def _ready(cluster: Cluster, node: Node) -> bool:
    condition = '{.status.conditions[?(@.type=="Ready")].status}'
    asked = ("get", "node", node.name, "--ignore-not-found", "-o", f"jsonpath={condition}")
    return kubectl(cluster, *asked) == "True"


def _admits_pods(cluster: Cluster) -> bool:
    """No Pod is let in before its namespace has an account for it."""
    asked = ("get", "serviceaccount", "default", "--ignore-not-found", "-o", "name")
    return kubectl(cluster, *asked) != ""


def tell(cluster: Cluster) -> None:
    kubeconfig = cluster.kubeconfig
    say(f"Kubernetes {binaries.KUBERNETES} is up: export KUBECONFIG={kubeconfig}")

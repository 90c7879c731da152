"""A cluster of nodes that run nothing, by the thousand: an API server, and kwok for the kubelets.

It is for tests of schedulers, which these start themselves. Nothing else is there: no controllers,
so no service accounts, and no kubelets, so Pods run as soon as they have a node.
"""

from pathlib import Path

from tools.cluster.binaries import build_program, cache_directory
from tools.cluster.certificates import issue_certificates
from tools.cluster.control_plane import start_api
from tools.cluster.layout import Cluster
from tools.cluster.lifecycle import remove_cluster
from tools.cluster.namespaces import create_namespaces
from tools.cluster.network import connect_network, free_network
from tools.cluster.processes import start
from tools.cluster.shared_state import lock_machine

PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl", "kwok")
STAGES = Path(__file__).parent / "kwok-stages.yaml"
WITHOUT_CONTROLLERS = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"


def bring_up_fake_nodes(folder: Path) -> Cluster:
    """A cluster that has no nodes yet. It takes root, and a few seconds; `take_down` removes it."""
    for program in PROGRAMS:
        build_program(program)
    with lock_machine():
        remove_cluster(folder)
        cluster = Cluster(folder, free_network())
        cluster.logs.mkdir(parents=True)
        issue_certificates(cluster)
        seen = (folder, cache_directory().parent, Path(__file__).parent)
        create_namespaces(cluster, seen=seen)
        connect_network(cluster)
    start_api(cluster, WITHOUT_CONTROLLERS)
    kwok = (f"--kubeconfig={cluster.kubeconfig}", f"--config={STAGES}", "--manage-all-nodes=true")
    start(cluster, "kwok", "kwok", *kwok)
    return cluster

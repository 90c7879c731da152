"""The control plane: etcd, the API server with its audit log, controllers, scheduler, proxy."""

import shutil
import ssl
import urllib.request
from pathlib import Path

from tools.cluster.certificates import kubeconfig
from tools.cluster.layout import Cluster
from tools.cluster.processes import start, wait_for

AUDIT_POLICY = Path(__file__).parents[2] / "deploy" / "agents" / "audit" / "audit-policy.yaml"


def start_control_plane(cluster: Cluster) -> None:
    policy = cluster.folder / AUDIT_POLICY.name
    shutil.copyfile(AUDIT_POLICY, policy)
    start_api(cluster, *_audit(cluster, str(policy)))
    start(cluster, "kube-controller-manager", *_controllers(cluster))
    start(cluster, "kube-scheduler", *_scheduler(cluster))
    start(cluster, "kube-proxy", *_proxy(cluster))


def start_api(cluster: Cluster, *options: str) -> None:
    """Start etcd and the API server, and wait until it is ready."""
    start(cluster, "etcd", *_etcd(cluster))
    start(cluster, "kube-apiserver", *_apiserver(cluster), *options)
    wait_for(cluster, "kube-apiserver", lambda: is_api_ready(cluster))


def is_api_ready(cluster: Cluster) -> bool:
    """Whether the API server reports that it is ready, asked from outside the namespaces."""
    trust = ssl.create_default_context(cafile=str(cluster.certificates / "ca.crt"))
    try:
        with urllib.request.urlopen(f"{cluster.server}/readyz", context=trust, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _etcd(cluster: Cluster) -> tuple[str, ...]:
    return (
        "etcd",
        f"--data-dir={cluster.folder}/etcd",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",  # it ends with the tests
    )


def _apiserver(cluster: Cluster) -> tuple[str, ...]:
    certificates = cluster.certificates
    return (
        "kube-apiserver",
        "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=6443",
        f"--advertise-address={cluster.control}",
        f"--tls-cert-file={certificates}/apiserver.crt",
        f"--tls-private-key-file={certificates}/apiserver.key",
        f"--client-ca-file={certificates}/ca.crt",
        f"--service-account-key-file={certificates}/accounts.key",
        f"--service-account-signing-key-file={certificates}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={cluster.services}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={certificates}/admin.crt",
        f"--kubelet-client-key={certificates}/admin.key",
        f"--kubelet-certificate-authority={certificates}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",  # nobody resolves the nodes' names
        # Without it, a server that is told to end waits a minute for those who watch it.
        "--shutdown-watch-termination-grace-period=1s",
    )


def _audit(cluster: Cluster, policy: str) -> tuple[str, ...]:
    return (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={cluster.audit_log}",
        "--audit-log-maxsize=10",  # MB: so that tests meet a rotation
        "--audit-log-maxbackup=20",
    )


def _controllers(cluster: Cluster) -> tuple[str, ...]:
    certificates = cluster.certificates
    return (
        "kube-controller-manager",
        f"--kubeconfig={kubeconfig(cluster, 'controller-manager')}",
        f"--service-account-private-key-file={certificates}/accounts.key",
        f"--root-ca-file={certificates}/ca.crt",
        f"--cluster-signing-cert-file={certificates}/ca.crt",
        f"--cluster-signing-key-file={certificates}/ca.key",
        "--use-service-account-credentials=true",
        f"--flex-volume-plugin-dir={cluster.folder}/volume-plugins",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        # A node that is no longer heard of is missed sooner; it tells of itself more often, too.
        "--node-monitor-grace-period=20s",
    )


def _scheduler(cluster: Cluster) -> tuple[str, ...]:
    return (
        "kube-scheduler",
        f"--kubeconfig={kubeconfig(cluster, 'scheduler')}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
    )


def _proxy(cluster: Cluster) -> tuple[str, ...]:
    """One serves all nodes: they share a network."""
    return (
        "kube-proxy",
        f"--kubeconfig={kubeconfig(cluster, 'proxy')}",
        f"--hostname-override={cluster.nodes[0].name}",
        f"--cluster-cidr={cluster.everything}",
        "--proxy-mode=iptables",
        # Limits of the whole machine, which are not ours to set.
        *("--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"),
        "--conntrack-tcp-timeout-close-wait=0",
    )

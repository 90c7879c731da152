"""A certificate authority, and a certificate for each client of the API server, by openssl."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from tools.cluster.commands import run
from tools.cluster.layout import Cluster

EXTENSIONS = """
[req]
distinguished_name = nobody
prompt = no
[nobody]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[holder]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth, serverAuth
subjectAltName = {names}
"""

# The clients, and their user and group in Kubernetes.
CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
}


def issue_certificates(cluster: Cluster) -> None:
    """Certificates and kubeconfigs, `admin`'s at the top of the folder."""
    folder = cluster.certificates
    folder.mkdir(mode=0o700)
    _certificate(folder, "ca", "/CN=clew-cluster")
    first_service = cluster.address(96, 1)
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
    addresses = ["127.0.0.1", first_service, cluster.control]
    _certificate(folder, "apiserver", "/CN=kube-apiserver", names=names, addresses=addresses)
    for name, subject in CLIENTS.items():
        _certificate(folder, name, subject, names=[name])
        _kubeconfig(cluster, name)
    for node in cluster.nodes:
        subject = f"/O=system:nodes/CN=system:node:{node.name}"
        _certificate(folder, node.name, subject, names=[node.name], addresses=[node.address])
        _kubeconfig(cluster, node.name)
    run("openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048")
    kubeconfig(cluster, "admin").rename(cluster.kubeconfig)


def kubeconfig(cluster: Cluster, name: str) -> Path:
    return cluster.certificates / f"{name}.kubeconfig"


def _certificate(
    folder: Path,
    who: str,
    subject: str,
    *,
    names: Sequence[str] = (),
    addresses: Sequence[str] = (),
) -> None:
    alternatives = [*(f"DNS:{name}" for name in names), *(f"IP:{address}" for address in addresses)]
    settings = folder / f"{who}.cnf"
    settings.write_text(EXTENSIONS.format(names=",".join(alternatives) or "DNS:localhost"))
    signed = who != "ca"
    by = ("-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key")) if signed else ()
    run(
        *(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ),
        *("-subj", subject, "-days", "3650", "-config", str(settings), *by),
        *("-extensions", "holder" if signed else "authority"),
        *("-keyout", str(folder / f"{who}.key"), "-out", str(folder / f"{who}.crt")),
    )


def _kubeconfig(cluster: Cluster, who: str) -> None:
    def data(name: str) -> str:
        return base64.b64encode((cluster.certificates / name).read_bytes()).decode()

    place = kubeconfig(cluster, who)
    place.touch(mode=0o600)
    place.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "clew",
                "contexts": [{"name": "clew", "context": {"cluster": "clew", "user": who}}],
                "clusters": [
                    {
                        "name": "clew",
                        "cluster": {
                            "server": cluster.server,
                            "certificate-authority-data": data("ca.crt"),
                        },
                    }
                ],
                "users": [
                    {
                        "name": who,
                        "user": {
                            "client-certificate-data": data(f"{who}.crt"),
                            "client-key-data": data(f"{who}.key"),
                        },
                    }
                ],
            },
            indent=1,
        )
    )

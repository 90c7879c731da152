"""Whether the cluster under test runs on this machine. Most tests run on any cluster.

Some need one of `make cluster`: nodes that see this machine's files, have our images, and
route between this machine and every Pod and Service. Its network interface identifies it.
"""

import json
import re
import socket
import subprocess
from functools import cache

import pytest
from tests.cluster.kube import Kube


def address_for_pods(kube: Kube) -> str:
    """The address by which Pods reach this machine: that from which it reaches the cluster."""
    server = kube("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
    host, _, port = server.partition("://")[2].partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port or 443)))
        return str(probe.getsockname()[0])


@cache
def is_local(kubeconfig: str) -> bool:
    return all(_by_cable(address) for address in _nodes(Kube(kubeconfig)))


def require_local_cluster(kube: Kube) -> None:
    """Skip the test that asks, unless the cluster is one of this machine's own."""
    if not is_local(kube.kubeconfig):
        pytest.skip("needs nodes that are this machine's own: make test-cluster without KUBECONFIG")


def _nodes(kube: Kube) -> list[str]:
    return [
        address["address"]
        for node in kube.get("nodes")["items"]
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    ]


def _by_cable(address: str) -> bool:
    asked = ["ip", "-json", "route", "get", address]
    ran = subprocess.run(asked, capture_output=True, text=True)
    routes = json.loads(ran.stdout) if ran.returncode == 0 else []
    return any(re.fullmatch("clew[0-9a-f]{8}", route.get("dev", "")) for route in routes)

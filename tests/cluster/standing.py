"""Where the cluster under test is. Most tests run on any; some need the one of `make cluster`.

Its nodes see this machine's files, have the images that were built here, and lead from this machine
to every Pod and Service by its address, and back. Whether they are here is seen by the way to them:
by the cable of such a cluster.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
from functools import cache

import pytest
from tests.cluster.kube import Kube


def seen_by_pods(kube: Kube) -> str:
    """The address by which Pods reach this machine: that from which it reaches the cluster."""
    server = kube("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")
    host, _, port = server.partition("://")[2].partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port or 443)))
        return str(probe.getsockname()[0])


@cache
def is_here(kubeconfig: str) -> bool:
    return all(_by_cable(address) for address in _nodes(Kube(kubeconfig)))


def need_here(kube: Kube) -> None:
    """Skip the test that asks, unless the cluster is one of this machine's own."""
    if not is_here(kube.kubeconfig):
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

"""Services: found by name, reached from every node, and the API server among them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.kube import Kube, pod

pytestmark = pytest.mark.cluster

SERVE = "mkdir /www && hostname > /www/who && exec httpd -f -p 8080 -h /www"
ASK = "until wget -q -O - http://{name}/who; do sleep 0.2; done"


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


def test_a_service_is_reached_by_name_from_every_node(kube: Kube, nodes: list[str]) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE, on=nodes[0]), service("server"))
    kube.await_("pod/server", "condition=Ready")
    for number, node in enumerate(nodes):
        name = f"server.{kube.namespace}.svc.cluster.local"
        asking = pod(f"asks-{number}", "sh", "-c", ASK.format(name=name), on=node)
        assert kube.run(asking) == "server\n"


def test_a_short_name_is_enough_within_a_namespace(kube: Kube) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE), service("server"))
    assert kube.run(pod("asks", "sh", "-c", ASK.format(name="server"))) == "server\n"


def test_a_pod_reaches_itself_through_its_service(kube: Kube) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE), service("server"))
    kube.await_("pod/server", "condition=Ready")
    asked = kube("exec", "server", "--", "sh", "-c", ASK.format(name="server"))
    assert asked == "server\n"


def test_pods_reach_the_api_server_with_their_account(kube: Kube) -> None:
    script = """
        cd /var/run/secrets/kubernetes.io/serviceaccount
        wget -q -O - --no-check-certificate --header "Authorization: Bearer $(cat token)" \
            https://kubernetes.default.svc/version
    """
    assert '"gitVersion"' in kube.run(pod("asks", "sh", "-c", script))


def test_a_forwarded_port_reaches_a_pod(kube: Kube) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE))
    kube.await_("pod/server", "condition=Ready")
    path = f"/api/v1/namespaces/{kube.namespace}/pods/server:8080/proxy/who"
    assert kube("get", "--raw", path) == "server\n"

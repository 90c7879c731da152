"""Services: found by name, reached from every node, and the API server among them."""

from typing import Any

import pytest
from tests.cluster.kube import CLEW, Kube, pod

pytestmark = pytest.mark.cluster

SERVE = "mkdir /www && hostname > /www/who && exec httpd -f -p 8080 -h /www"
# Ready is not yet known everywhere, so it is asked again for a while.
ASK = """
    exec 2>/dev/null
    for n in $(seq 300); do wget -q -O - http://{name}/who && exit; sleep 0.2; done; exit 1
"""

ASK_API_SERVER = """
import pathlib, ssl, urllib.request
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
request = urllib.request.Request("https://kubernetes.default.svc/version")
request.add_header("Authorization", f"Bearer {(account / 'token').read_text()}")
trust = ssl.create_default_context(cafile=account / "ca.crt")
print(urllib.request.urlopen(request, context=trust).read().decode())
"""


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


def test_a_service_is_reached_by_name_from_every_node(kube: Kube, nodes: list[str]) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE, on=nodes[0]), service("server"))
    kube.wait_for("pod/server", "condition=Ready")
    for number, node in enumerate(nodes):
        name = f"server.{kube.namespace}.svc.cluster.local"
        asking = pod(f"asks-{number}", "sh", "-c", ASK.format(name=name), on=node)
        assert kube.run(asking) == "server\n"


def test_a_short_name_is_enough_within_a_namespace(kube: Kube) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE), service("server"))
    assert kube.run(pod("asks", "sh", "-c", ASK.format(name="server"))) == "server\n"


def test_a_pod_reaches_itself_through_its_service(kube: Kube) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE), service("server"))
    kube.wait_for("pod/server", "condition=Ready")
    name = f"server.{kube.namespace}"  # "server" alone is what the Pod calls itself
    assert kube("exec", "server", "--", "sh", "-c", ASK.format(name=name)) == "server\n"


def test_pods_reach_the_api_server_with_their_account(kube: Kube) -> None:
    asks = pod("asks", "python3", "-c", ASK_API_SERVER, image=CLEW)
    assert '"gitVersion"' in kube.run(asks)


def test_a_forwarded_port_reaches_a_pod(kube: Kube) -> None:
    kube.apply(pod("server", "sh", "-c", SERVE))
    kube.wait_for("pod/server", "condition=Ready")
    path = f"/api/v1/namespaces/{kube.namespace}/pods/server:8080/proxy/who"
    assert kube("get", "--raw", path) == "server\n"

"""Nobody but the server reaches a notebook, a TensorBoard or a viewer: tried over a real network.

Calico's Felix enforces policies on the first node of `make cluster`: what is to be protected runs
there. Who connects runs on either.
"""

from collections.abc import Iterator

import pytest
from tests.cluster.kube import Kube, pod
from tests.cluster.location import require_local_cluster
from tests.cluster.operator import claim, notebook, operator, volume  # noqa: F401 - operator is a fixture
from tests.cluster.test_tensorboards import tensorboard
from tests.cluster.test_viewers import viewer
from tests.wait import wait_until
from tools.cluster.layout import NODES

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

SERVER = {"app.kubernetes.io/name": "clew-server"}
PORTS = {"first": 8888, "curves": 6006, "pvcviewer-files": 8080}
POLICY = "networkpolicy.networking.k8s.io"
WAIT = ("sleep", "3600")


@pytest.fixture
def pods(kube: Kube) -> Iterator[dict[str, str]]:
    """The addresses of the Pods of one of each kind, by the names of their Services: all are on the
    node where their volume is."""
    require_local_cluster(kube)
    with volume(kube, kube.namespace, "home", node=NODES[0]) as folder:
        folder.chmod(0o777)
        kube.apply(
            claim("home", storageClassName="", volumeName=kube.namespace),
            notebook(volume="home"),
            tensorboard("pvc://home"),
            viewer("home"),
        )
        for what in ("notebook/first", "tensorboard/curves", "pvcviewer/files"):
            kube.wait_for(what, "condition=Ready")
        found = kube.get("pods")["items"]
        assert {each["spec"]["nodeName"] for each in found} == {NODES[0]}
        yield {
            service: next(
                each["status"]["podIP"]
                for each in found
                if each["metadata"]["name"].startswith(service)
            )
            for service in PORTS
        }


@pytest.fixture
def own(cluster: Kube, kube: Kube) -> Iterator[Kube]:
    """The operator's own namespace, where the server is: outside of a cluster, the kubeconfig's."""
    here = Kube(cluster.kubeconfig, "default")
    yield here
    here("delete", "pods", f"--selector=test={kube.namespace}", "--wait=false")


def client(kube: Kube, name: str, node: str, **labels: str) -> str:
    made = pod(name, *WAIT, on=node)
    made["metadata"]["labels"] |= labels
    kube.apply(made)
    return name


def reached(kube: Kube, name: str, targets: list[str]) -> set[str]:
    """Which of these a client can connect to, whatever is answered there."""
    each = [f'(nc -w 3 {target} </dev/null >/dev/null && echo "{target}") &' for target in targets]
    said = kube("exec", name, "--", "sh", "-c", f"{' '.join(each)} wait", ok=False)
    return set(said.splitlines())


def test_only_the_server_connects(kube: Kube, own: Kube, pods: dict[str, str]) -> None:
    test = {"test": kube.namespace}
    server = client(own, f"server-{kube.namespace}", NODES[1], **test, **SERVER)
    strangers = [
        # Who runs a Pod beside them, on the same node and on another.
        (kube, client(kube, "near", NODES[0])),
        (kube, client(kube, "far", NODES[1])),
        # Who calls itself the server, elsewhere; and who is where the server is.
        (kube, client(kube, "disguised", NODES[1], **SERVER)),
        (own, client(own, f"other-{kube.namespace}", NODES[1], **test)),
    ]
    for place, name in [(own, server), *strangers]:
        place.wait_for(f"pod/{name}", "condition=Ready")
    targets = [f"{address} {PORTS[service]}" for service, address in pods.items()]
    targets += [f"{service}.{kube.namespace} 80" for service in pods]
    wait_until("the server reaches all", lambda: reached(own, server, targets) == set(targets))
    outside = "kubernetes.default 443"
    for place, name in strangers:
        assert reached(place, name, [*targets, outside]) == {outside}, f"{name} gets through"
    kube("delete", POLICY, "clew-first")
    wait_until("the policy is back", lambda: kube("get", POLICY, "clew-first", ok=False))

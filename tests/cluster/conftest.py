"""Fixtures of tests on the cluster that `make test-cluster` found or started."""

import os
import uuid
from collections.abc import Iterator

import pytest
from tests.cluster.concurrency import OWN_CLUSTER, lock_cluster
from tests.cluster.kube import Kube
from tools.cluster.commands import ClusterError
from tools.cluster.nodes import check_cgroups


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where no cluster can be brought up, another may be tested."""
    if item.get_closest_marker("xdist_group") == OWN_CLUSTER.mark:
        try:
            check_cgroups()
        except ClusterError as failed:
            pytest.skip(str(failed))


@pytest.fixture(scope="session")
def cluster() -> Kube:
    kubeconfig = os.environ.get("KUBECONFIG")
    if not kubeconfig:
        pytest.fail("KUBECONFIG names no cluster: make test-cluster")
    return Kube(kubeconfig)


@pytest.fixture(scope="module")
def spaces(request: pytest.FixtureRequest) -> str:
    """How the names of the namespaces of a file's tests begin."""
    file = request.path.stem.removeprefix("test_").replace("_", "-")
    return f"clew-{file}-{uuid.uuid4().hex[:4]}"


@pytest.fixture(scope="session")
def nodes(cluster: Kube) -> list[str]:
    """The names of the nodes that take Pods."""
    items = cluster.get("nodes")["items"]
    return [item["metadata"]["name"] for item in items if not item["spec"].get("taints")]


@pytest.fixture(autouse=True)
def _turn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Before all else that a test asks for, and until it has taken that away."""
    if not request.node.get_closest_marker("cluster"):
        yield
        return
    with lock_cluster(request.node, tmp_path_factory.getbasetemp().parent / "cluster.lock"):
        yield


@pytest.fixture
def kube(cluster: Kube, spaces: str) -> Iterator[Kube]:
    """A namespace of the test's own."""
    name = f"{spaces}-{uuid.uuid4().hex[:8]}"
    cluster("create", "namespace", name)
    yield Kube(cluster.kubeconfig, name)
    cluster("delete", "namespace", name, "--wait=false")

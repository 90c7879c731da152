"""Fixtures of tests on the cluster that `make test-cluster` found or started."""

import os
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the cluster while a test and its fixtures of any scope run."""
    if not item.get_closest_marker("cluster"):
        return (yield)
    with lock_cluster(item, Path(tempfile.gettempdir()) / f"clew-cluster-{os.getuid()}.lock"):
        return (yield)


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


@pytest.fixture
def kube(cluster: Kube, spaces: str) -> Iterator[Kube]:
    """A namespace of the test's own."""
    name = f"{spaces}-{uuid.uuid4().hex[:8]}"
    cluster("create", "namespace", name)
    own = Kube(cluster.kubeconfig, name)
    own("wait", "serviceaccount/default", "--for=create", "--timeout=60s")  # Pods need it
    yield own
    cluster("delete", "namespace", name, "--wait=false")

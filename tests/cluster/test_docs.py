"""The pages that need a cluster are true as well."""

import os
from pathlib import Path

import pytest
from tests.cluster.concurrency import ALL_NAMESPACES
from tests.cluster.deployment import DEPLOY, NAMESPACE, wait_until_uninstalled
from tests.cluster.kube import Kube
from tests.local.test_docs import NEEDS_A_CLUSTER, PAGES, holds
from tools.cluster.binaries import search_path

pytestmark = [pytest.mark.cluster, ALL_NAMESPACES]


@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.name in NEEDS_A_CLUSTER], ids=lambda path: path.name
)
def test_page(path: Path, tmp_path: Path, kube: Kube) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kube("config", "view", "--raw", "--flatten"))
    own = Kube(str(kubeconfig))
    own("config", "set-context", "--current", f"--namespace={kube.namespace}")
    wait_until_uninstalled(kube)
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "deploy").symlink_to(DEPLOY)
    environment = {"PATH": f"{search_path()}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    try:
        holds(path, tmp_path / "page", {**os.environ, **environment, "LC_ALL": "C.UTF-8"})
    finally:
        kube("delete", "namespace", NAMESPACE, "--ignore-not-found")

"""The pages that need a cluster are true as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cluster.installing import DEPLOY, SPACE, no_longer_installed
from tests.cluster.kube import Kube
from tests.cluster.sharing import EVERYWHERE
from tests.local.test_docs import NEEDS_A_CLUSTER, PAGES, holds
from tools.cluster.binaries import search_path

pytestmark = [pytest.mark.cluster, EVERYWHERE]


@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.name in NEEDS_A_CLUSTER], ids=lambda path: path.name
)
def test_page(path: Path, tmp_path: Path, kube: Kube) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kube("config", "view", "--raw", "--flatten"))
    own = Kube(str(kubeconfig))
    own("config", "set-context", "--current", f"--namespace={kube.namespace}")
    no_longer_installed(kube)
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "deploy").symlink_to(DEPLOY)
    environment = {"PATH": f"{search_path()}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    try:
        holds(path, tmp_path / "page", {**os.environ, **environment, "LC_ALL": "C.UTF-8"})
    finally:
        kube("delete", "namespace", SPACE, "--ignore-not-found")

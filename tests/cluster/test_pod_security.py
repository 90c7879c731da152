"""All that Clew runs is admitted, and works, where Kubernetes enforces `restricted`.

The operator and the server always run so: the namespace of deploy/ has the label, too.
"""

import json

import pytest
from tests.cluster.jupyter import jupyter_notebook, open_jupyter, server, wait_until_reachable  # noqa: F401 - server is a fixture
from tests.cluster.kube import Kube, pod
from tests.cluster.operator import claim, notebook, operator, wait_for_reason  # noqa: F401 - operator is a fixture
from tests.cluster.test_tensorboards import tensorboard
from tests.cluster.test_viewers import viewer
from tests.local.server import Server

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

LABEL = "pod-security.kubernetes.io/enforce=restricted"
RECORD = (
    "!clew init && echo 3 > numbers && clew exec -- sort -o sorted numbers && clew trace sorted"
)


def test_all_kinds_run_where_restricted_is_enforced(
    kube: Kube,
    server: Server,  # noqa: F811
) -> None:
    kube("label", "namespace", kube.namespace, LABEL)
    root = json.dumps(pod("root"))
    assert kube("apply", "--filename=-", given=root, ok=False) == "", "the label has no effect"
    kube.apply(claim("home"), jupyter_notebook(home="home"))
    as_root = {"runAsUser": 0, "runAsNonRoot": False}
    kube.apply(notebook("root", spec={"securityContext": as_root}))
    with open_jupyter(server, kube) as first, first.kernel() as run:
        kube.apply(tensorboard("pvc://home"), viewer("home"))
        assert "sort" in run(RECORD)
        wait_until_reachable(
            kube, "tensorboard/curves", first.page, f"/tensorboard/{kube.namespace}/curves/"
        )
        files = f"/pvcviewer/{kube.namespace}/files/files/"
        wait_until_reachable(kube, "pvcviewer/files", first.page, files)
        assert first.page.put(f"{files}new.txt", content=b"by the viewer").is_success
        assert run("print(open('new.txt').read())") == "by the viewer\n"
    assert "PodSecurity" in wait_for_reason(kube, "notebook/root", "NotAllowed")["message"]

"""What is idle is ended; what is busy, and what nobody can ask for, is not."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.jupyter import (  # noqa: F401 - server is a fixture
    assert_idle_deleted,
    jupyter_notebook,
    server,
    wait_until_reachable,
)
from tests.cluster.kube import Kube
from tests.cluster.operator import (
    Operator,
    claim,
    notebook,
    ready_condition,
    run_operator,
    wait_for_reason,
)
from tests.cluster.test_tensorboards import tensorboard
from tests.local.istio_metrics import serve_metrics
from tests.local.server import Server
from tests.prometheus import prometheus
from tests.wait import wait_until

pytestmark = pytest.mark.cluster

LAST = "notebooks.kubeflow.org/last-activity"
LIMIT = "clew.dev/idle-minutes"
STOPPED = "kubeflow-resource-stopped"
LOOKS = ("--culling", "--through-api", "--check-minutes=0.017")
"""Every second."""


@pytest.fixture
def culler(kube: Kube, tmp_path: Path) -> Iterator[Operator]:
    """It takes for idle what was not used for nine seconds."""
    with run_operator(kube, tmp_path, *LOOKS, "--idle-minutes=0.15") as made:
        yield made


def notes(kube: Kube, name: str) -> dict[str, str]:
    found: dict[str, str] = kube.get("notebook", name)["metadata"]["annotations"]
    return found


def test_an_idle_notebook_is_stopped_and_can_be_started_again(kube: Kube, culler: Operator) -> None:
    kube.apply(
        *(jupyter_notebook(name, annotations={LIMIT: "never"}) for name in ("idle", "kept")),
        notebook("other"),
    )
    for name in ("idle", "kept", "other"):
        kube.wait_for(f"notebook/{name}", "condition=Ready")
    wait_until("its use is noted", lambda: LAST in notes(kube, "idle"))
    began = time.time()
    kube("annotate", "notebook/idle", f"{LIMIT}-")
    wait_for_reason(kube, "notebook/idle", "Stopped")
    assert STOPPED in notes(kube, "idle")
    assert LAST not in notes(kube, "idle")
    space = f'namespace="{kube.namespace}"'
    metrics = culler.metrics()
    assert metrics['clew_culled_total{kind="Notebook"}'] == 1
    assert metrics[f'notebook_culling_total{{name="idle",{space}}}'] == 1
    culled = metrics[f'last_notebook_culling_timestamp_seconds{{name="idle",{space}}}']
    assert began < culled < time.time()
    wait_until("two run", lambda: culler.metrics()[f"notebook_running{{{space}}}"] == 2)
    kube("annotate", "notebook/idle", f"{STOPPED}-")
    kube.wait_for("notebook/idle", "condition=Ready")
    wait_until("it is counted anew", lambda: LAST in notes(kube, "idle"))
    for name in ("kept", "other"):
        assert ready_condition(kube, f"notebook/{name}")["status"] == "True", (
            "it was not to be culled"
        )


def test_a_used_notebook_keeps_running(
    kube: Kube,
    culler: Operator,
    server: Server,  # noqa: F811
) -> None:
    """Every call of the API counts; without any more, it is idle, too."""
    kube.apply(jupyter_notebook("busy"), jupyter_notebook("idle"))
    for name in ("busy", "idle"):
        kube.wait_for(f"notebook/{name}", "condition=Ready")

    def used() -> bool:
        with server.apps_client() as user:
            assert user.get(f"/notebook/{kube.namespace}/busy/api/contents").is_success
        return ready_condition(kube, "notebook/idle").get("reason") == "Stopped"

    wait_until("the idle one is stopped", used)
    assert ready_condition(kube, "notebook/busy")["status"] == "True"
    wait_for_reason(kube, "notebook/busy", "Stopped")


def test_traffic_counted_by_istio_is_use(kube: Kube, tmp_path: Path) -> None:
    """By what a Prometheus knows of servers that cannot be asked."""
    with (
        serve_metrics() as istio,
        prometheus([istio.address], tmp_path) as metrics,
        run_operator(kube, tmp_path, *LOOKS, "--idle-minutes=0.1", f"--prometheus={metrics}"),
    ):
        kube.apply(notebook("used"), notebook("idle"))
        for name in ("used", "idle"):
            istio.count(kube.namespace, name, 1)
            kube.wait_for(f"notebook/{name}", "condition=Ready")
        requests = itertools.count(2)

        def used() -> bool:
            istio.count(kube.namespace, "used", next(requests))
            return ready_condition(kube, "notebook/idle").get("reason") == "Stopped"

        wait_until("the idle one is stopped", used)
        assert ready_condition(kube, "notebook/used")["status"] == "True"
        wait_for_reason(kube, "notebook/used", "Stopped")


def test_traffic_through_the_server_is_use(
    kube: Kube,
    server: Server,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLEW_SERVER", server.address)
    monkeypatch.setenv("CLEW_TOKEN", server.token)
    for name in ("used", "idle"):
        kube.apply(claim(name), tensorboard(f"pvc://{name}", name))
    with run_operator(kube, tmp_path, *LOOKS, "--proxied"), server.apps_client() as user:
        for name in ("used", "idle"):
            place = f"/tensorboard/{kube.namespace}/{name}/"
            wait_until_reachable(kube, f"tensorboard/{name}", user, place)
        assert_idle_deleted(kube, user, "tensorboard")
    assert kube.get("pvc", "idle")["status"]["phase"] == "Bound"

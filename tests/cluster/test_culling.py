"""Idle notebooks are stopped; busy ones, and those that nobody can ask, are not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.kube import Kube
from tests.cluster.labs import jupyter
from tests.cluster.operators import Operator, notebook, operating, ready, says, until

pytestmark = pytest.mark.cluster

LAST = "notebooks.kubeflow.org/last-activity"
STOPPED = "kubeflow-resource-stopped"


@pytest.fixture
def culler(kube: Kube, tmp_path: Path) -> Iterator[Operator]:
    """It looks every second, and takes for idle what was not used for a quarter of a minute."""
    options = ("--culling", "--through-api", "--idle-minutes=0.25", "--check-minutes=0.017")
    with operating(kube, tmp_path, *options) as made:
        yield made


def asked(kube: Kube, name: str, path: str) -> Any:
    """Ask Jupyter as a page would."""
    space = kube.namespace
    service = f"/api/v1/namespaces/{space}/services/{name}:80/proxy"
    return json.loads(kube("get", "--raw", f"{service}/notebook/{space}/{name}/api/{path}"))


def notes(kube: Kube, name: str) -> dict[str, str]:
    found: dict[str, str] = kube.get("notebook", name)["metadata"]["annotations"]
    return found


def test_what_is_idle_is_stopped_and_can_be_started_again(kube: Kube, culler: Operator) -> None:
    kube.apply(
        jupyter("idle"),
        jupyter("kept", annotations={"clew.dev/idle-minutes": "never"}),
        notebook("other"),
    )
    for name in ("idle", "kept", "other"):
        kube.await_(f"notebook/{name}", "condition=Ready")
    until("its use is noted", lambda: LAST in notes(kube, "idle"))
    says(kube, "notebook/idle", "Stopped")
    assert STOPPED in notes(kube, "idle")
    assert LAST not in notes(kube, "idle")
    assert culler.metrics()['clew_culled_total{kind="Notebook"}'] == 1
    kube("annotate", "notebook/idle", f"{STOPPED}-")
    kube.await_("notebook/idle", "condition=Ready")
    until("it is counted anew", lambda: LAST in notes(kube, "idle"))
    for name in ("kept", "other"):
        assert ready(kube, f"notebook/{name}")["status"] == "True", "it was not to be culled"


def test_what_is_used_goes_on(kube: Kube, culler: Operator) -> None:
    """Every call of the API counts; without any more, it is idle, too."""
    kube.apply(jupyter("busy"), jupyter("idle"))
    for name in ("busy", "idle"):
        kube.await_(f"notebook/{name}", "condition=Ready")

    def used() -> bool:
        asked(kube, "busy", "contents")
        return ready(kube, "notebook/idle").get("reason") == "Stopped"

    until("the idle one is stopped", used)
    assert ready(kube, "notebook/busy")["status"] == "True"
    says(kube, "notebook/busy", "Stopped")

"""TensorBoards on a real cluster: what is asked for reaches their Pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.kube import Kube
from tests.cluster.operators import (  # noqa: F401 - operator is a fixture
    Operator,
    claim,
    operator,
    says,
    until,
)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def tensorboard(logspath: str, name: str = "curves", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tensorboard.kubeflow.org/v1alpha1",
        "kind": "Tensorboard",
        "metadata": {"name": name, **metadata},
        "spec": {"logspath": logspath},
    }


def test_an_edit_of_the_path_reaches_it(kube: Kube) -> None:
    kube.apply(claim("logs"), tensorboard("pvc://logs/a"))
    until("it has a Pod", lambda: kube.get("pods", "--selector=app=curves")["items"])
    kube.apply(tensorboard("pvc://logs/b"))

    def shown() -> bool:
        pods = kube.get("pods", "--selector=app=curves")["items"]
        paths = [p["spec"]["containers"][0]["volumeMounts"][0].get("subPath") for p in pods]
        return paths == ["b"]

    until("the new path is mounted", shown)


def test_a_path_that_cannot_work_is_named(kube: Kube) -> None:
    kube.apply(tensorboard("pvc://logs/../x"))
    found = says(kube, "tensorboard/curves", "InvalidSpec")
    assert "leads out" in found["message"]
    assert kube.get("deployments")["items"] == []

"""VirtualServices as Istio itself defines them: its schema takes every field that is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.kube import Kube
from tests.cluster.operators import known, notebook, operating, until
from tests.cluster.test_tensorboards import tensorboard
from tests.cluster.test_viewers import viewer

pytestmark = pytest.mark.cluster

ISTIO = "istio.io/api@v1.29.0"
NAME = "virtualservices.networking.istio.io"


@pytest.fixture
def istio(cluster: Kube) -> Iterator[None]:
    """Istio's definition of a VirtualService, from its own module, unless it is there already."""
    if cluster("get", "crd", NAME, "--output=name", ok=False):
        yield
        return
    words = ["go", "mod", "download", "-json", ISTIO]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    place = Path(json.loads(ran.stdout)["Dir"], "kubernetes/customresourcedefinitions.gen.yaml")
    every = yaml.safe_load_all(place.read_text())
    [found] = [d for d in every if d and d["metadata"]["name"] == NAME]
    cluster("create", "--filename", "-", given=json.dumps(found))
    until("VirtualServices are known", lambda: known(cluster, "virtualservices"))
    yield
    cluster("delete", "crd", NAME)


def test_every_kind_has_its_way(kube: Kube, istio: None, tmp_path: Path) -> None:
    with operating(kube, tmp_path, "--istio", "--istio-gateway=a/b"):
        stopped = {"kubeflow-resource-stopped": ""}
        headers = {"notebooks.kubeflow.org/http-headers-request-set": '{"X-A": "b"}'}
        kube.apply(
            notebook(annotations={**stopped, **headers}),
            tensorboard("pvc://logs", annotations=stopped),
            viewer("logs"),
        )

        def ways() -> dict[str, Any] | None:
            found = kube.get("virtualservices")["items"]
            return {i["metadata"]["name"]: i["spec"] for i in found} if len(found) == 3 else None

        found = until("all are there", ways)
        space = kube.namespace
        way = found[f"notebook-{space}-first"]
        assert (way["hosts"], way["gateways"]) == (["*"], ["a/b"])
        assert way["http"] == [
            {
                "match": [{"uri": {"prefix": f"/notebook/{space}/first/"}}],
                "rewrite": {"uri": f"/notebook/{space}/first/"},
                "headers": {"request": {"set": {"X-A": "b"}}},
                "route": [
                    {
                        "destination": {
                            "host": f"first.{space}.svc.cluster.local",
                            "port": {"number": 80},
                        }
                    }
                ],
            }
        ]
        assert found["curves"]["http"][0]["timeout"] == "300s"
        assert found["pvcviewer-files"]["http"][0]["rewrite"]["uri"] == f"/pvcviewer/{space}/files/"

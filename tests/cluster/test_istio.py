"""VirtualServices as Istio itself defines them: its schema takes every field that is written, and
the overlay allows it."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.deployment import act_as_service_account, container_of, render
from tests.cluster.kube import Kube
from tests.cluster.operator import claim, is_registered, notebook, run_operator
from tests.cluster.test_tensorboards import tensorboard
from tests.cluster.test_viewers import viewer
from tests.local.istio_metrics import serve_metrics
from tests.prometheus import prometheus
from tests.wait import wait_until

from clew.kube.workload_tokens import HEADER

# One after the other: what defines a VirtualService is the whole cluster's.
pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("istio")]

LAST = "clew.dev/last-activity"
REWRITE = "notebooks.kubeflow.org/http-rewrite-uri"
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
    wait_until("VirtualServices are known", lambda: is_registered(cluster, "virtualservices"))
    yield
    cluster("delete", "crd", NAME)


def test_every_kind_gets_a_virtual_service(kube: Kube, istio: None, tmp_path: Path) -> None:
    with run_operator(kube, tmp_path, "--istio", "--istio-gateway=a/b"):
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

        found = wait_until("all are there", ways)
        space = kube.namespace
        way = found[f"notebook-{space}-first"]
        assert (way["hosts"], way["gateways"]) == (["*"], ["a/b"])
        sent = way["http"][0]["headers"]["request"]["set"]
        assert re.fullmatch("[0-9a-f]{64}", sent.pop(HEADER)), "the notebook is shown its token"
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


def test_what_the_overlay_allows_is_enough(
    kube: Kube, istio: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing but its rights and its settings, and those that the page adds."""
    found = render(kube, "overlays/istio")
    told = container_of(found, "clew-operator")
    assert told["args"] == ["operator"]
    given = {each["name"]: each["value"] for each in told["env"]}
    with (
        serve_metrics() as seen,
        prometheus([seen.address], tmp_path) as metrics,
        act_as_service_account(kube, found, "clew-operator", tmp_path) as own,
        run_operator(kube, tmp_path) as operator,
    ):
        operator.end()
        seen.count("others", "used", 1)
        culling = {"ENABLE_CULLING": "true", "IDLENESS_CHECK_PERIOD": "0.017"}
        for name, value in {**given, **culling, "PROMETHEUS_URL": metrics}.items():
            monkeypatch.setenv(name, value)
        operator.kube = own
        operator.start()
        kube.apply(claim("logs"), notebook(), tensorboard("pvc://logs"), viewer("logs"))
        for what in ("notebook/first", "tensorboard/curves", "pvcviewer/files"):
            kube.wait_for(what, "condition=Ready")
        ways = {each["metadata"]["name"]: each["spec"] for each in kube.get(NAME)["items"]}
        way = f"notebook-{kube.namespace}-first"
        assert ways.keys() == {way, "curves", "pvcviewer-files"}
        assert {gate for each in ways.values() for gate in each["gateways"]} == {
            "kubeflow/kubeflow-gateway"
        }

        kube("annotate", "notebook/first", f"{REWRITE}=/")
        wait_until(
            "the edit arrives",
            lambda: kube.get(NAME, way)["spec"]["http"][0]["rewrite"] == {"uri": "/"},
        )
        for kind, name in (("tensorboard", "curves"), ("pvcviewer", "files")):
            wait_until(
                "its use is noted",
                lambda what=(kind, name): LAST in kube.get(*what)["metadata"]["annotations"],
            )
            kube("annotate", kind, name, "clew.dev/idle-minutes=0.05")
            kube.wait_for(f"{kind}/{name}", "delete")
        refused = re.compile("forbidden|permission", re.IGNORECASE).search
        assert [line for line in operator.log().splitlines() if refused(line)] == []

"""The definitions in deploy/crds are those that the generator writes, and demand enough."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.custom_resources.definitions import documents

import clew

ROOT = Path(__file__).parents[3]
CRDS = ROOT / "deploy" / "crds"
FOUND = {path.name: yaml.safe_load(path.read_text()) for path in CRDS.glob("*.yaml")}


def schema(name: str, version: str = "v1alpha1") -> dict[str, Any]:
    versions = {v["name"]: v for v in FOUND[f"{name}.yaml"]["spec"]["versions"]}
    found: dict[str, Any] = versions[version]["schema"]["openAPIV3Schema"]["properties"]
    return found


def test_what_lies_in_deploy_is_what_is_written() -> None:
    written = documents()
    assert {name: (CRDS / name).read_text() for name in written} == written


@pytest.mark.parametrize(
    ("name", "kind", "versions"),
    [
        ("notebooks.kubeflow.org", "Notebook", ["v1", "v1beta1", "v1alpha1"]),
        ("tensorboards.tensorboard.kubeflow.org", "Tensorboard", ["v1alpha1"]),
        ("pvcviewers.kubeflow.org", "PVCViewer", ["v1alpha1"]),
        ("tfjobs.kubeflow.org", "TFJob", ["v1"]),
        ("pytorchjobs.kubeflow.org", "PyTorchJob", ["v1"]),
    ],
)
def test_names_and_versions_are_upstream_s(name: str, kind: str, versions: list[str]) -> None:
    spec = FOUND[f"{name}.yaml"]["spec"]
    assert spec["names"]["kind"] == kind
    assert [v["name"] for v in spec["versions"]] == versions
    assert [v["name"] for v in spec["versions"] if v["storage"]] == versions[:1]
    assert all(v["served"] and v["subresources"]["status"] == {} for v in spec["versions"])


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_a_notebook_s_containers_have_a_name_and_an_image(version: str) -> None:
    template = schema("notebooks.kubeflow.org", version)["spec"]["properties"]["template"]
    containers = template["properties"]["spec"]["properties"]["containers"]
    assert containers["minItems"] == 1
    assert set(containers["items"]["required"]) == {"name", "image"}
    limits = containers["items"]["properties"]["resources"]["properties"]["limits"]
    assert limits["additionalProperties"]["x-kubernetes-int-or-string"]


def test_a_viewer_needs_its_claim_alone() -> None:
    assert schema("pvcviewers.kubeflow.org")["spec"]["required"] == ["pvc"]


def test_kubectl_can_remember_what_it_applied() -> None:
    """It keeps the document in an annotation, which may have 256 KiB."""
    assert all(len(json.dumps(crd)) < 256 * 1024 for crd in FOUND.values())


def test_the_operator_that_is_installed_is_this_one() -> None:
    deployment = yaml.safe_load((ROOT / "deploy/operator/deployment.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"docker.io/clew/clew:{clew.__version__}"
    assert container["args"][0] == "operator"

"""The Pod Security Standard `restricted`: our Pods have it, users' Pods where they must."""

import copy
from pathlib import Path

import pytest
import yaml
from tests.unit.kube.sample_resources import cluster_state, notebook, tensorboard, viewer

from clew.kube.controller.options import Options
from clew.kube.controller.reconciler import DECIDE
from clew.kube.objects import Json
from clew.kube.resources.pod_security import restrict

DEPLOY = Path(__file__).parents[4] / "deploy"


def is_restricted(pod: Json) -> bool:
    """What `restricted` asks of who runs and with which rights."""
    whole = pod.get("securityContext") or {}
    every = [c.get("securityContext") or {} for c in pod["containers"]]
    return (
        whole.get("runAsNonRoot") is True
        and whole.get("seccompProfile") == {"type": "RuntimeDefault"}
        and all(one.get("allowPrivilegeEscalation") is False for one in every)
        and all((one.get("capabilities") or {}).get("drop") == ["ALL"] for one in every)
    )


def pod_of(resource: Json, *, restricted: bool) -> Json:
    surroundings = cluster_state(restricted=restricted)
    made = DECIDE[resource["kind"]](resource, surroundings, Options()).children
    found: Json = made[-1]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("resource", [tensorboard("pvc://logs"), viewer()], ids=["board", "viewer"])
def test_what_is_ours_always_has_it(resource: Json) -> None:
    assert is_restricted(pod_of(resource, restricted=False))


def test_a_notebook_gets_it_where_the_namespace_enforces_it() -> None:
    assert not is_restricted(pod_of(notebook(), restricted=False)), "its image may run as root"
    assert is_restricted(pod_of(notebook(), restricted=True))


def test_what_a_user_says_stays() -> None:
    own = {
        "securityContext": {"runAsNonRoot": False, "fsGroup": 7},
        "initContainers": [{"name": "b", "securityContext": None}],
        "containers": [
            {"name": "a", "securityContext": {"capabilities": {"drop": ["NET_RAW"], "add": ["X"]}}}
        ],
    }
    made = restrict(copy.deepcopy(own))
    assert made["securityContext"]["runAsNonRoot"] is False
    assert made["securityContext"]["fsGroup"] == 7
    assert made["containers"][0]["securityContext"] == {
        "capabilities": {"drop": ["NET_RAW"], "add": ["X"]},
        "allowPrivilegeEscalation": False,
    }
    assert made["initContainers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", ["operator", "server"])
def test_the_programs_have_it(name: str) -> None:
    deployment = yaml.safe_load((DEPLOY / name / "deployment.yaml").read_text())
    assert is_restricted(deployment["spec"]["template"]["spec"])


@pytest.mark.parametrize("file", sorted(DEPLOY.glob("images/*/Containerfile")), ids=str)
def test_an_image_s_user_is_a_number_other_than_root(file: Path) -> None:
    """Kubernetes cannot tell whether a name is root's."""
    user = [line.split()[1] for line in file.read_text().splitlines() if line.startswith("USER ")]
    assert user[-1].partition(":")[0].isdigit()
    assert int(user[-1].partition(":")[0]) > 0

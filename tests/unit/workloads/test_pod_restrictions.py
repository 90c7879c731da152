"""What users may not put into the Pods of notebooks and viewers."""

import copy
from typing import Any

import pytest
from hypothesis import given
from tests.unit.workloads.json_values import VALUES, bodies

from clew.errors import ClewError, NotAllowed, UsageError
from clew.kube.objects import Json
from clew.workloads.changes.pod_restrictions import check_edit, check_host_access
from clew.workloads.forms.notebook_form import build_notebook
from clew.workloads.forms.spawner_config import FormDefaults

HOST_VOLUME = {"hostPath": {"path": "/srv/{notebook-name}"}}
FREE = FormDefaults({"dataVolumes": {"value": [{"mount": "/s", "existingSource": HOST_VOLUME}]}})
NAMES = (
    *("imagePullPolicy", "cpu", "memory", "gpus", "affinityConfig", "tolerationGroup"),
    *("workspaceVolume", "dataVolumes", "shm", "configurations", "environment"),
)
FIXED = FormDefaults(
    {name: {"readOnly": True} for name in NAMES}
    | {"allowCustomImage": False, "image": {"options": ["lab:1"]}}
)


def notebook(**pod: Any) -> Json:
    container = {"name": "n", "image": "lab:1", "resources": {"requests": {"cpu": "1"}}}
    return {
        "kind": "Notebook",
        "metadata": {"name": "n", "labels": {"app": "n"}},
        "spec": {"template": {"spec": {"containers": [container], **pod}}},
    }


def viewer(**pod: Any) -> Json:
    return {"kind": "PVCViewer", "metadata": {"name": "n"}, "spec": {"pvc": "n", "podSpec": pod}}


def host_volume(path: str) -> Json:
    return {"volumes": [{"name": "host", "hostPath": {"path": path}}]}


def container(**more: Any) -> Json:
    return {"name": "second", "image": "lab:1", **more}


ON_HOST = [
    host_volume("/"),
    {"hostNetwork": True},
    {"hostPID": True},
    {"hostIPC": True},
    {"initContainers": [container(securityContext={"privileged": True})]},
    {"initContainers": [container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})]},
    {"initContainers": [container(securityContext={"procMount": "Unmasked"})]},
    {"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]},
]


@pytest.mark.parametrize("pod", ON_HOST)
def test_no_edit_reaches_the_machine(pod: Json) -> None:
    for make in (notebook, viewer):
        with pytest.raises(NotAllowed, match="access to the machine"):
            check_edit(make(**pod), make(), FREE)
        check_edit(make(**pod), make(**pod), FREE)  # somebody with other rights added it


def test_only_the_administrator_offers_directories_of_machines() -> None:
    def build(path: str) -> Json:
        source = {"hostPath": {"path": path}}
        body = {
            "name": "n",
            "image": "lab:1",
            "datavols": [{"mount": "/s", "existingSource": source}],
        }
        return build_notebook(body, FREE, namespace="ns", user="me").notebook

    check_host_access(build("/srv/{notebook-name}"), {}, FREE)
    with pytest.raises(NotAllowed):
        check_host_access(build("/etc"), {}, FREE)


@pytest.mark.parametrize(
    "pod",
    [
        {"initContainers": [container(resources={"limits": {"cpu": "64"}})]},
        {"initContainers": [container(env=[{"name": "A", "value": "b"}])]},
        {"initContainers": [container(volumeMounts=[{"name": "a", "mountPath": "/a"}])]},
        {"initContainers": [container(image="other:1")]},
        {"containers": [container(resources={"requests": {"cpu": "1"}}, envFrom=[{}])]},
        {"containers": [container(resources={"claims": [{"name": "gpu"}]})]},
        {"containers": [container(imagePullPolicy="Never")]},
        {"resources": {"limits": {"memory": "1Ti"}}},
        {"volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]},
        {"volumes": [{"name": "tools", "image": {"reference": "other:1"}}]},
        {"nodeSelector": {"gpu": "true"}},
        {"nodeName": "control-plane"},
        {"tolerations": [{"operator": "Exists"}]},
    ],
)
def test_a_fixed_field_is_fixed_in_every_container(pod: Json) -> None:
    with pytest.raises(UsageError, match="administrator"):
        check_edit(notebook(**pod), notebook(), FIXED)


def test_fixed_configurations_and_images_cannot_be_added_by_labels_or_viewers() -> None:
    labelled = copy.deepcopy(notebook())
    labelled["metadata"]["labels"]["gpu-driver"] = "true"
    with pytest.raises(UsageError, match="configurations"):
        check_edit(labelled, notebook(), FIXED)
    with pytest.raises(UsageError, match="other:1"):
        check_edit(viewer(containers=[container(image="other:1")]), viewer(), FIXED)


@given(VALUES | bodies("containers", "volumes", "initContainers", "securityContext", "resources"))
def test_any_pod_is_accepted_or_explained(pod: Any) -> None:
    for kind, spec in (("Notebook", {"template": {"spec": pod}}), ("PVCViewer", {"podSpec": pod})):
        edited = {"kind": kind, "metadata": {"name": "n"}, "spec": spec}
        try:
            check_edit(edited, notebook() if kind == "Notebook" else viewer(), FIXED)
        except ClewError as error:
            assert error.message

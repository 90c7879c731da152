"""Forms: whatever is filled in, there is a resource or a sentence that says what is wrong."""

from typing import Any

import pytest
from hypothesis import example, given
from tests.unit.workloads.json_values import bodies

from clew.errors import ClewError, NotFound, UsageError
from clew.kube.objects import Json
from clew.workloads.changes.edits import apply_form
from clew.workloads.forms.notebook_form import NotebookRequest, build_notebook
from clew.workloads.forms.spawner_config import FormDefaults, SpawnerConfig
from clew.workloads.local.validation import check_resource
from clew.workloads.tensorboards import build_tensorboard
from clew.workloads.volumes import build_volume

CLUSTER = SpawnerConfig(None, bundled="cluster").defaults
LOCAL = SpawnerConfig(None, bundled="local").defaults
FIELDS = (
    *("serverType", "image", "customImage", "customImageCheck", "imagePullPolicy", "cpu"),
    *("cpuLimit", "memory", "memoryLimit", "gpus", "tolerationGroup", "affinityConfig"),
    *("configurations", "shm", "environment", "workspace", "datavols", "idleMinutes"),
)


def build(defaults: FormDefaults = CLUSTER, **body: Any) -> NotebookRequest:
    return build_notebook({"name": "n", **body}, defaults, namespace="ns", user="me")


def container(request: NotebookRequest) -> Json:
    [found] = request.notebook["spec"]["template"]["spec"]["containers"]
    return dict(found)


@given(bodies("name", *FIELDS))
@example({"name": "n", "serverType": {}})
def test_any_notebook_form_makes_a_notebook_or_an_error(body: dict[str, Any]) -> None:
    for defaults in (CLUSTER, LOCAL):
        try:
            made = build_notebook(body, defaults, namespace="ns", user="me")
        except UsageError as error:
            assert error.message
        else:
            assert made.notebook["metadata"]["name"] == body["name"]


@given(bodies(*FIELDS))
def test_any_edit_changes_a_notebook_or_is_an_error(body: dict[str, Any]) -> None:
    notebook = build(datavols=[existing("data", "/data")]).notebook
    try:
        edited, _ = apply_form(notebook, body, CLUSTER)
    except UsageError as error:
        assert error.message
    else:
        assert edited["metadata"]["name"] == "n"


@given(bodies("name", "mode", "size", "class", "type", "snapshot"))
def test_any_volume_form_makes_a_volume_or_an_error(body: dict[str, Any]) -> None:
    try:
        made = build_volume(body, namespace="ns")
    except UsageError as error:
        assert error.message
    else:
        assert made["metadata"]["name"] == body["name"]


@given(bodies("name", "logspath", "configurations"))
def test_any_tensorboard_form_makes_one_or_an_error(body: dict[str, Any]) -> None:
    try:
        made = build_tensorboard(body, namespace="ns")
    except UsageError as error:
        assert error.message
    else:
        assert made["spec"]["logspath"] == body["logspath"]


@given(bodies("template", "containers", "pvc", "logspath", "accessModes", "resources", "podSpec"))
def test_any_specification_is_accepted_or_explained_here(spec: dict[str, Any]) -> None:
    for kind in ("Notebook", "Tensorboard", "PVCViewer", "PersistentVolumeClaim", "Pod"):
        about = {"name": "n", "namespace": "local"}
        try:
            check_resource({"kind": kind, "metadata": about, "spec": spec})
        except (UsageError, NotFound) as error:
            assert error.message


def existing(claim: str, mount: str) -> Json:
    return {"mount": mount, "existingSource": {"persistentVolumeClaim": {"claimName": claim}}}


def new(mount: str, **metadata: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"mount": mount, "newPvc": {"metadata": metadata, "spec": spec}}


def test_defaults_fill_what_is_missing() -> None:
    made = build()
    assert container(made)["resources"] == {
        "requests": {"cpu": "0.5", "memory": "1Gi"},
        "limits": {"cpu": "0.6", "memory": "1.2Gi"},
    }
    assert made.claims == (), "only a form that has the field gets a workspace"
    notes = made.notebook["metadata"]["annotations"]
    assert notes["notebooks.kubeflow.org/server-type"] == "jupyter"
    assert notes["notebooks.kubeflow.org/creator"] == "me"


@pytest.mark.parametrize(
    ("cpu", "limit", "given"),
    [
        ("0.5", "0.6", None),
        ("500m", "600m", None),
        ("1", "1.2", None),
        (2, "2.4", None),
        ("1", "3", "3"),
        ("100m", "1", "1"),
    ],
)
def test_limits_follow_requests(cpu: Any, limit: str, given: str | None) -> None:
    body = {"cpu": cpu} | ({"cpuLimit": given} if given else {})
    assert container(build(**body))["resources"]["limits"]["cpu"] == limit


def test_volumes_are_mounted_once_each() -> None:
    volumes = [
        existing("data", "/one"),
        existing("data", "/two"),
        new("/new", name="x-{notebook-name}"),
    ]
    made = build(workspace=new("/home/jovyan", name="{notebook-name}-workspace"), datavols=volumes)
    pod = made.notebook["spec"]["template"]["spec"]
    names = [one["name"] for one in pod["volumes"] if one["name"] != "dshm"]
    assert names == ["n-workspace", "data", "x-n"]
    mounts = {one["mountPath"]: one["name"] for one in container(made)["volumeMounts"]}
    assert mounts == {
        "/home/jovyan": "n-workspace",
        "/one": "data",
        "/two": "data",
        "/new": "x-n",
        "/dev/shm": "dshm",
    }
    assert [one["metadata"]["name"] for one in made.claims] == ["n-workspace", "x-n"]
    assert {one["metadata"]["namespace"] for one in made.claims} == {"ns"}


@pytest.mark.parametrize(
    ("volumes", "says"),
    [
        ([existing("data", "/a"), existing("more", "/a/")], "two volumes are mounted at /a"),
        ([existing("data", "data")], "cannot be mounted"),
        ([existing("data", "/a/../etc")], "cannot be mounted"),
        ([existing("data", "/")], "cannot be mounted"),
        ([existing("Not A Name", "/a")], "not valid"),
        ([new("/a", name="x", namespace="other")], "must not name a namespace"),
        ([{**new("/a", name="x"), **existing("y", "/a")}], "either newPvc or existingSource"),
    ],
)
def test_impossible_volumes_are_explained(volumes: list[Json], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        build(datavols=volumes)


def test_generated_names_belong_to_the_request() -> None:
    def names(request: str | None) -> list[str]:
        body = {
            "name": "n",
            "datavols": [new("/a", generateName="d-"), new("/b", generateName="d-")],
        }
        made = build_notebook(body, CLUSTER, namespace="ns", user="me", request=request)
        return [one["metadata"]["name"] for one in made.claims]

    assert len(set(names("one"))) == 2
    assert names("one") == names("one") != names("two")
    assert names(None) != names(None)


def test_an_edit_keeps_what_it_does_not_mention() -> None:
    body = {"cpu": "1", "memory": "2Gi", "configurations": ["gpu-driver"], "idleMinutes": 30}
    notebook = build(datavols=[existing("data", "/data")], **body).notebook
    pod = notebook["spec"]["template"]["spec"]
    pod["volumes"].append({"name": "secret", "secret": {"secretName": "s"}})
    pod["containers"][0]["volumeMounts"].append({"name": "secret", "mountPath": "/s"})
    edited, claims = apply_form(notebook, {"datavols": [new("/more", name="more")]}, CLUSTER)
    pod = edited["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["volumes"]] == ["secret", "more", "dshm"]
    assert [one["metadata"]["name"] for one in claims] == ["more"]
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert edited["metadata"]["labels"] == {"app": "n", "gpu-driver": "true"}
    edited, _ = apply_form(edited, {"idleMinutes": None, "configurations": []}, CLUSTER)
    assert "clew.dev/idle-minutes" not in edited["metadata"]["annotations"]
    assert edited["metadata"]["labels"] == {"app": "n"}


def test_gpus_are_of_offered_vendors() -> None:
    made = build(gpus={"num": "2", "vendor": "nvidia.com/gpu"})
    assert container(made)["resources"]["limits"]["nvidia.com/gpu"] == "2"
    for none in ({"num": "none"}, {}, {"num": 0}, None):
        assert "nvidia.com/gpu" not in container(build(gpus=none))["resources"]["limits"]
    for wrong in ({"num": "2", "vendor": "acme.com/gpu"}, {"num": "-1", "vendor": "amd.com/gpu"}):
        with pytest.raises(ClewError):
            build(gpus=wrong)

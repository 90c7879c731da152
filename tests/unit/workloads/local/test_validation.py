"""Which resources this machine accepts."""

from typing import Any

import pytest
from tests.unit.workloads.local.resources import notebook, resource, tensorboard, viewer, volume

from clew.errors import ClewError, NotFound, UsageError
from clew.kube.objects import Json
from clew.workloads.local.resource_files import merge
from clew.workloads.local.validation import check_resource


@pytest.mark.parametrize("made", [notebook(), tensorboard(), viewer(), volume()])
def test_what_the_app_sends_is_accepted(made: Json) -> None:
    check_resource(made)


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "A", "x" * 64, "-a", "a-", "a..b", ".", "a b", "a\n", None, 3, []]
)
@pytest.mark.parametrize("make", [notebook, tensorboard, viewer, volume])
def test_names_are_those_of_kubernetes(make: Any, name: Any) -> None:
    with pytest.raises(UsageError):
        check_resource(merge(make(), {"metadata": {"name": name}}))


@pytest.mark.parametrize("kind", ["Pod", "Secret", "", None, ["Notebook"]])
def test_other_kinds_are_refused(kind: Any) -> None:
    with pytest.raises(UsageError):
        check_resource({**notebook(), "kind": kind})


def test_there_is_one_namespace() -> None:
    with pytest.raises(NotFound):
        check_resource(merge(notebook(), {"metadata": {"namespace": "other"}}))


def pod(**more: Any) -> Json:
    return merge(notebook(), {"spec": {"template": {"spec": more}}})


CONTAINER = {"name": "a", "image": "b"}


@pytest.mark.parametrize(
    "made",
    [
        {**notebook(), "spec": None},
        {**notebook(), "metadata": 1},
        pod(containers=[]),
        pod(containers=[1]),
        pod(containers=[CONTAINER, CONTAINER]),
        pod(initContainers=[CONTAINER]),
        pod(containers=[CONTAINER], volumes=[{"name": "h", "hostPath": {"path": "/"}}]),
        pod(containers=[CONTAINER], volumes=[{"name": "a/b", "emptyDir": {}}]),
        pod(containers=[CONTAINER], volumes=[{"name": "..", "emptyDir": {}}]),
        pod(containers=[CONTAINER], volumes=[{"name": "a\0b", "emptyDir": {}}]),
        pod(
            containers=[CONTAINER],
            volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": ["a"]}}],
        ),
        pod(volumes=[1]),
        pod(volumes={}),
        pod(containers=[{**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "x"}]}]),
        pod(containers=[{**CONTAINER, "volumeMounts": [{"name": "no", "mountPath": "/x"}]}]),
        pod(containers=[{**CONTAINER, "env": [{"name": "a=b", "value": "1"}]}]),
        pod(containers=[{**CONTAINER, "env": [{"name": "a", "value": "1\0"}]}]),
        pod(containers=[{**CONTAINER, "env": [{"name": "a", "valueFrom": {"secretKeyRef": 1}}]}]),
        pod(containers=[{**CONTAINER, "env": 1}]),
        tensorboard(logs=""),
        tensorboard(logs="pvc://"),
        tensorboard(logs="a\0b"),
        resource("Tensorboard", "tensorboard.kubeflow.org/v1alpha1", "b", {"logspath": 3}),
        viewer(claim="../x"),
        merge(viewer(), {"spec": {"podSpec": {"containers": []}}}),
        merge(volume(), {"spec": {"dataSource": {"kind": "VolumeSnapshot", "name": "s"}}}),
        volume(labels={"a": 1}),
        volume(annotations={"a": "x" * (256 << 10)}),
    ],
)
def test_what_cannot_run_here_is_refused(made: Json) -> None:
    with pytest.raises(ClewError) as raised:
        check_resource(made)
    assert raised.value.http_status < 500

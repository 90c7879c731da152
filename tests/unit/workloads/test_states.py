"""The states of resources in plain words, also of those that others wrote."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.workloads.json_values import SCALARS

from clew.kube.objects import Json
from clew.workloads.details import describe_conditions, describe_containers, path_of, to_yaml
from clew.workloads.notebooks import notebook_item, notebook_status
from clew.workloads.tensorboards import tensorboard_item, tensorboard_status
from clew.workloads.volumes import volume_item, volume_status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STOPPED = {"annotations": {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}}
DELETED = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
PULL = {
    "type": "Ready",
    "status": "False",
    "reason": "ImagePullBackOff",
    "message": "no such image",
}

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "no node has 99 CPUs",
}


def resource(kind: str, status: Json | None = None, *, age: float = 100, **metadata: Any) -> Json:
    created = (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"name": "n", "namespace": "ns", "creationTimestamp": created, **metadata}
    return {"kind": kind, "metadata": about, "status": status or {}, "spec": {}}


@pytest.mark.parametrize(
    ("found", "phase", "says"),
    [
        (resource("Notebook", age=1), "waiting", "about to start"),
        (resource("Notebook", {"readyReplicas": 1}), "ready", "Running"),
        (resource("Notebook", {"readyReplicas": 1}, **STOPPED), "waiting", "being stopped"),
        (resource("Notebook", **STOPPED), "stopped", "volumes are kept"),
        (resource("Notebook", **STOPPED, **DELETED), "terminating", "being deleted"),
        (resource("Notebook", {"conditions": [PULL]}), "warning", "no such image"),
        (
            resource("Notebook", {"conditions": [{**PULL, "reason": "ContainerCreating"}]}),
            "waiting",
            "no such image",
        ),
        (
            resource("Notebook", {"containerState": {"waiting": {"reason": "ErrImagePull"}}}),
            "warning",
            "has not said why",
        ),
        (
            resource("Notebook", {"containerState": {"waiting": {"reason": "PodInitializing"}}}),
            "waiting",
            "",
        ),
        (
            resource("Notebook", {"conditions": [UNSCHEDULABLE]}),
            "warning",
            "no node has 99 CPUs",
        ),
        (resource("Notebook"), "warning", ""),
    ],
)  # fmt: skip
def test_notebooks(found: Json, phase: str, says: str) -> None:
    status = notebook_status(found, [], NOW)
    assert (status.phase, says in status.message) == (phase, True), status


def test_the_newest_warning_says_what_nothing_else_does() -> None:
    def event(minute: int, message: str) -> Json:
        at = (NOW - timedelta(minutes=minute)).isoformat()
        return {"type": "Warning", "reason": "Failed", "message": message, "lastTimestamp": at}

    events = [event(1, "newest"), event(2, "older"), event(90, "of another one before")]
    found = resource("Notebook", age=3600)
    assert notebook_status(found, events, NOW).message == "newest"
    assert notebook_status(found, events[2:], NOW).message != "of another one before"


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        (resource("Tensorboard"), "unavailable"),
        (resource("Tensorboard", {"readyReplicas": 1}), "ready"),
        (resource("Tensorboard", {"conditions": [PULL]}), "warning"),
        (resource("Tensorboard", **STOPPED), "stopped"),
        (resource("Tensorboard", {"readyReplicas": 1}, **STOPPED), "waiting"),
        (resource("Tensorboard", **DELETED), "terminating"),
    ],
)
def test_tensorboards(found: Json, phase: str) -> None:
    assert tensorboard_status(found).phase == phase


@pytest.mark.parametrize(
    ("found", "reason", "phase"),
    [
        (resource("PersistentVolumeClaim", {"phase": "Bound"}), None, "ready"),
        (resource("PersistentVolumeClaim", {"phase": "Bound"}, **DELETED), None, "terminating"),
        (resource("PersistentVolumeClaim", {"phase": "Pending"}), None, "waiting"),
        (resource("PersistentVolumeClaim"), "WaitForFirstConsumer", "unavailable"),
        (resource("PersistentVolumeClaim"), "Provisioning", "waiting"),
        (resource("PersistentVolumeClaim"), "FailedBinding", "warning"),
    ],
)
def test_volumes(found: Json, reason: str | None, phase: str) -> None:
    events = [{"type": "Normal", "reason": reason, "message": "why"}] if reason else []
    assert volume_status(found, events).phase == phase


PARTS: dict[str, st.SearchStrategy[Any]] = {
    "conditions": st.just(None) | st.lists(
        st.dictionaries(
            st.sampled_from(["type", "status", "reason", "message", "lastTransitionTime"]),
            st.text(max_size=5) | st.none(),
        ),
        max_size=2,
    ),
    "containerState": st.none() | st.just({}) | st.just({"waiting": {}}) | st.just({"running": {}}),
    "readyReplicas": st.none() | st.integers(0, 2),
    "phase": st.none() | st.text(max_size=5),
    "capacity": st.none() | st.just({}) | st.just({"storage": "1Gi"}),
}  # fmt: skip
STATUSES = st.fixed_dictionaries({}, optional=PARTS)
CONTAINERS = st.none() | st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.text(max_size=3),
            "image": st.none() | st.text(max_size=9),
            "resources": st.none() | st.just({}) | st.just({"requests": None, "limits": {"a": 1}}),
            "volumeMounts": st.none() | st.just([]) | st.just([{"name": "v"}]),
            "env": st.none() | st.just([]),
        },
    ),
    max_size=2,
)
SPECS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "template": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "spec": st.none()
                | st.fixed_dictionaries(
                    {}, optional={"containers": CONTAINERS, "volumes": st.none() | st.just([])}
                )
            },
        ),
        "logspath": st.none() | st.text(max_size=5),
        "accessModes": st.none() | st.just([]) | st.just(["ReadWriteOnce"]),
        "resources": st.none() | st.just({}),
        "pvc": st.none() | st.just("n"),
    },
)
METADATA = st.fixed_dictionaries(
    {"name": st.just("n"), "namespace": st.just("ns")},
    optional={
        "labels": st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
        "annotations": st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
        "creationTimestamp": st.none() | st.text(max_size=5),
    },
)
RESOURCES = st.fixed_dictionaries(
    {"metadata": METADATA}, optional={"spec": SPECS, "status": st.none() | STATUSES}
)
EVENTS = st.lists(
    st.dictionaries(
        st.sampled_from(["type", "reason", "message", "lastTimestamp", "eventTime"]), SCALARS
    ),
    max_size=2,
)


@given(found=RESOURCES, events=EVENTS)
def test_resources_that_lack_fields_have_entries_too(found: Json, events: list[Json]) -> None:
    """Kubeflow answers 500 for the whole list if one notebook lacks a field."""
    item = notebook_item(found, events, NOW, vendors={"a": "A"})
    assert (item.name, item.namespace) == ("n", "ns")
    assert tensorboard_item(found).name == "n"
    assert volume_item(found, events, notebooks=[found], viewers=[found]).name == "n"
    assert "name: n" in to_yaml(found)
    describe_conditions(found)
    describe_containers([found])
    path_of(found)

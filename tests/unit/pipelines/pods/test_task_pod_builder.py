"""The Pod of a task: every platform setting arrives in it."""

from typing import Any

import pytest

from clew.documents.ids import Uid
from clew.kube.tasks.task_pod import (
    ClaimVolume,
    ConfigMapVolume,
    EmptyVolume,
    EphemeralVolume,
    FieldVariable,
    KeyVariable,
    Mount,
    SecretVolume,
    TaskPod,
)
from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.engine.run_state import Node
from clew.pipelines.pods.pod_attempt import build_plan
from clew.pipelines.pods.task_pod_builder import TaskPlace, build_pod
from clew.pipelines.spec import ir, kubernetes_platform
from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.values import Values
from clew.pipelines.tasks.executor_files import build_executor_input

PLACE = TaskPlace(
    namespace="team",
    run=Uid("a" * 32),
    attempt=3,
    url="s3://lake/runs/1/train/1",
    helper_image="clew:1",
    scheduler="latency-aware",
)
FUNCTION = ir.PythonFunction("def f(): pass", "f", {"LEVEL": "2"}, (), "python:3.12")


def build(
    body: ir.Command | ir.PythonFunction = FUNCTION,
    *,
    resources: ir.Resources | None = None,
    workspace: str = "",
    inputs: dict[str, Any] | None = None,
    **settings: Any,
) -> TaskPod:
    platform = kubernetes_platform.parse_platform(Part(settings, "exec"), [])
    constants = {
        name: one.source.value
        for name, one in platform.inputs.items()
        if isinstance(one.source, ir.Constant)
    }
    component = ir.Component(
        "c", ir.Slots(), ir.Slots(), body, resources or ir.Resources(), platform
    )
    task = ir.Task("train", "c", {}, {}, frozenset())
    values = Values({**constants, **(inputs or {})})
    node = Node(task, component, "train", named_inputs=values)
    place = TaskPlace(**{**_fields(PLACE), "workspace": workspace})
    executor_input = build_executor_input(node, place.url, "/s3/lake/runs/1/train/1")
    return build_pod(node, place, executor_input, {"pipeline_job_uuid": place.run})


def _fields(place: TaskPlace) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__struct_fields__}


def test_a_python_component() -> None:
    pod = build()
    assert pod.image == "python:3.12"
    assert pod.command[0] == "python3"
    assert pod.env == {"_KFP_RUNTIME": "true", "LEVEL": "2"}
    assert pod.helper.secret == "clew-artifacts"
    assert pod.helper.env == {"CLEW_TASK_PLACE": PLACE.url}
    assert (pod.namespace, pod.run, pod.task) == ("team", PLACE.run, "train")


def test_a_container_component() -> None:
    body = ir.Command("img", ("run", "{{$.outputs.output_file}}"), ("a b",), {}, "exec")
    pod = build(body)
    assert pod.command == ("run", "/s3/lake/runs/1/train/1/executor_output.json")
    assert pod.args == ("a b",)
    assert pod.env == {}


def test_arguments_that_linux_would_refuse() -> None:
    body = ir.Command("img", ("run",), ("x" * (128 << 10),), {}, "exec")
    with pytest.raises(BadInput, match="too long for a command line"):
        build(body)


def test_resources() -> None:
    resources = ir.Resources(
        accelerators="2",
        accelerator_type="example.com/gpu",
        requests={"cpu": "500m", "memory": 3e9},
        limits={"cpu": 1.5},
    )
    pod = build(resources=resources)
    assert pod.requests == {"cpu": "500m", "memory": "3000000000"}
    assert pod.limits == {"cpu": "1500m", "example.com/gpu": "2"}
    with pytest.raises(BadInput, match="many"):
        build(resources=ir.Resources(limits={"cpu": "many"}))


def test_secrets_configmaps_and_volumes() -> None:
    pod = build(
        workspace="shared",
        inputs={"platform--0": "chosen"},
        secretAsVolume=[{"secretName": "s", "mountPath": "/s", "optional": True}],
        configMapAsVolume=[{"configMapName": "m", "mountPath": "/m"}],
        pvcMount=[
            {
                "pvcNameParameter": {"componentInputParameter": "which"},
                "mountPath": "/p",
                "subPath": "a",
            }
        ],
        emptyDirMounts=[
            {"volumeName": "e", "mountPath": "/e", "medium": "Memory", "sizeLimit": "1Gi"}
        ],
        genericEphemeralVolume=[
            {
                "volumeName": "g",
                "mountPath": "/g",
                "accessModes": ["ReadWriteOnce"],
                "size": "2Gi",
                "storageClassName": "fast",
                "metadata": {"labels": {"a": "b"}},
            }
        ],
        enabledSharedMemory={"volumeName": "shm", "size": "64Mi"},
        secretAsEnv=[
            {"secretName": "s", "keyToEnv": [{"secretKey": "k", "envVar": "K"}], "optional": True}
        ],
        configMapAsEnv=[{"configMapName": "m", "keyToEnv": [{"configMapKey": "c", "envVar": "C"}]}],
        fieldPathAsEnv=[{"name": "IP", "fieldPath": "status.podIP"}],
    )
    assert pod.mounts == (
        Mount("/s", SecretVolume("s", True)),
        Mount("/m", ConfigMapVolume("m")),
        Mount("/p", ClaimVolume("chosen"), "a"),
        Mount("/e", EmptyVolume("e", "Memory", "1Gi")),
        Mount("/g", EphemeralVolume("g", "2Gi", ("ReadWriteOnce",), "fast", {"a": "b"})),
        Mount("/dev/shm", EmptyVolume("shared memory", "Memory", "64Mi")),
        Mount("/kfp-workspace", ClaimVolume("shared")),
    )
    assert pod.key_variables == (
        KeyVariable("K", "secret", "s", "k", True),
        KeyVariable("C", "configmap", "m", "c"),
    )
    assert pod.field_variables == (FieldVariable("IP", "status.podIP"),)


def test_placement_and_rights() -> None:
    pod = build(
        inputs={
            "platform--0": {"disk": "ssd"},
            "platform--1": "pull",
            "platform--2": [{"key": "b", "operator": "Exists"}],
        },
        nodeSelector={"nodeSelectorJson": {"componentInputParameter": "nodes"}},
        imagePullSecret=[
            {"secretName": "one"},
            {"secretNameParameter": {"componentInputParameter": "two"}},
        ],
        tolerations=[
            {"key": "a", "effect": "NoExecute", "tolerationSeconds": "5"},
            {"tolerationJson": {"componentInputParameter": "more"}},
        ],
        imagePullPolicy="Always",
        podMetadata={"labels": {"l": "1"}, "annotations": {"n": "2"}},
        securityContext={"runAsUser": "7", "runAsGroup": "8", "runAsNonRoot": True},
        activeDeadlineSeconds="60",
    )
    assert pod.node_selector == {"disk": "ssd"}
    assert pod.pull_secrets == ("one", "pull")
    assert pod.tolerations == (
        {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5},
        {"key": "b", "operator": "Exists"},
    )
    assert pod.pull_policy == "Always"
    assert (pod.labels, pod.annotations) == ({"l": "1"}, {"n": "2"})
    assert (pod.run_as_user, pod.run_as_group, pod.run_as_non_root) == (7, 8, True)
    assert pod.deadline == 60


def test_a_task_near_its_clients_has_the_scheduler_that_knows_latencies() -> None:
    labels = {"typeOfComponent": "Predict", "OurLocation": "HOME"}
    assert build(podMetadata={"labels": labels}).scheduler == "latency-aware"
    assert build(podMetadata={"labels": {"typeOfComponent": "Train"}}).scheduler == ""


@pytest.mark.parametrize("name", ["result.json", "plan.json", "trace.zst", ".", ".."])
def test_an_output_cannot_take_the_place_of_a_document(name: str) -> None:
    outputs = ir.Slots(
        artifacts={name: ir.ArtifactSlot("system.Model", "1", many=False, optional=False)}
    )
    component = ir.Component(
        "c",
        ir.Slots(),
        outputs,
        FUNCTION,
        ir.Resources(),
        kubernetes_platform.parse_platform(Part({}, "exec"), []),
    )
    node = Node(ir.Task("train", "c", {}, {}, frozenset()), component, "train")
    with pytest.raises(BadInput, match="may not be named"):
        build_plan(node, {}, build(), trace=True)

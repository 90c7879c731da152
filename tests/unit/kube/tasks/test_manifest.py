"""The manifest of a task's Pod."""

from typing import Any

import pytest
from tests.unit.kube.tasks.sample_pods import TASK, task

from clew.kube.tasks.manifest import build_manifest
from clew.kube.tasks.task_pod import (
    ClaimVolume,
    ConfigMapVolume,
    EmptyVolume,
    EphemeralVolume,
    FieldVariable,
    KeyVariable,
    Mount,
    SecretVolume,
    pod_name,
)


def build(**settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = build_manifest(task(**settings))["spec"]
    return found


def main(**settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = build(**settings)["containers"][1]
    return found


def test_the_helper_comes_first_and_brings_clew_step() -> None:
    spec = build()
    assert [one["name"] for one in spec["containers"]] == ["clew", "main"]
    hook = spec["containers"][0]["lifecycle"]["postStart"]["exec"]["command"]
    assert hook == ["clew-step", "--install", "/clew/bin/clew-step"]
    assert spec["containers"][1]["command"][:2] == ["/clew/bin/clew-step", "--"]
    assert spec["restartPolicy"] == "Never"


def test_credentials_reach_the_helper_alone() -> None:
    spec = build()
    assert spec["containers"][0]["envFrom"] == [{"secretRef": {"name": "clew-artifacts"}}]
    assert "clew-artifacts" not in str(spec["containers"][1])
    assert spec["automountServiceAccountToken"] is False


def test_no_command_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a command"):
        build(command=())


def test_words_reach_the_command_as_they_are() -> None:
    """Kubernetes replaces `$(NAME)` and `$$`."""
    made = main(command=("sh", "-c", "echo $$ $(date) $HOME"), args=("$(X)",), env={"A": "$(B)"})
    assert made["command"][2:] == ["sh", "-c", "echo $$$$ $$(date) $$HOME"]
    assert made["args"] == ["$$(X)"]
    assert made["env"] == [{"name": "A", "value": "$$(B)"}]


def test_variables_from_secrets_configmaps_and_fields() -> None:
    made = main(
        env={"PLAIN": "1"},
        key_variables=(
            KeyVariable("PASSWORD", "secret", "login", "password"),
            KeyVariable("MODE", "configmap", "modes", "mode", optional=True),
        ),
        field_variables=(FieldVariable("POD", "metadata.name"),),
    )
    assert made["env"] == [
        {"name": "PLAIN", "value": "1"},
        {
            "name": "PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}},
        },
        {
            "name": "MODE",
            "valueFrom": {
                "configMapKeyRef": {"name": "modes", "key": "mode", "optional": True},
            },
        },
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]


def test_volumes() -> None:
    spec = build(
        mounts=(
            Mount("/secret", SecretVolume("login")),
            Mount("/config", ConfigMapVolume("modes", optional=True)),
            Mount("/data", ClaimVolume("data"), sub_path="in"),
            Mount("/more", ClaimVolume("data"), sub_path="more"),
            Mount("/dev/shm", EmptyVolume("shm", medium="Memory", size="1Gi")),
            Mount("/a", EmptyVolume("a")),
            Mount("/b", EmptyVolume("b")),
            Mount("/scratch", EphemeralVolume("s", "5Gi", ("ReadWriteOnce",), labels={"x": "y"})),
        )
    )
    by_name = {one.pop("name"): one for one in spec["volumes"]}
    mounts = {one["mountPath"]: one for one in spec["containers"][1]["volumeMounts"]}

    def volume(path: str) -> Any:
        return by_name[mounts[path]["name"]]

    assert volume("/secret") == {"secret": {"secretName": "login"}}
    assert volume("/config") == {"configMap": {"name": "modes", "optional": True}}
    assert volume("/data") is volume("/more")
    assert volume("/data") == {"persistentVolumeClaim": {"claimName": "data"}}
    assert (mounts["/data"]["subPath"], mounts["/more"]["subPath"]) == ("in", "more")
    assert volume("/dev/shm") == {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    assert volume("/a") is not volume("/b")
    template = volume("/scratch")["ephemeral"]["volumeClaimTemplate"]
    assert template["metadata"] == {"labels": {"x": "y"}}
    assert template["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
    }
    helper = {one["mountPath"] for one in spec["containers"][0]["volumeMounts"]}
    assert helper == {"/clew", "/s3"}


def test_where_it_may_run_and_for_how_long() -> None:
    toleration = {"key": "gpu", "operator": "Exists"}
    affinity = {"nodeAffinity": {"x": 1}}
    spec = build(
        node_selector={"disk": "ssd"},
        tolerations=(toleration,),
        affinity=affinity,
        scheduler="clew-scheduler",
        deadline=60,
        pull_secrets=("registry",),
    )
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [toleration]
    assert spec["affinity"] == affinity
    assert spec["schedulerName"] == "clew-scheduler"
    assert spec["activeDeadlineSeconds"] == 60
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_a_pipeline_cannot_take_over_the_labels_of_the_run() -> None:
    made = build_manifest(task(labels={"clew.dev/run": "other", "team": "a"}))["metadata"]
    assert made["labels"]["clew.dev/run"] == TASK.run
    assert made["labels"]["team"] == "a"
    assert made["annotations"]["clew.dev/task-path"] == "train"


def test_nothing_is_set_that_nobody_asked_for() -> None:
    assert set(build()) == {
        "restartPolicy",
        "automountServiceAccountToken",
        "enableServiceLinks",
        "containers",
        "volumes",
    }
    assert set(main()) == {"name", "image", "command", "args", "env", "volumeMounts"}


def test_a_namespace_that_enforces_restricted() -> None:
    """Both containers run as one user, so that each can read what the other wrote."""
    spec = build_manifest(TASK, restricted=True)["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    user = spec["securityContext"]["runAsUser"]
    assert user
    for one in spec["containers"]:
        assert one["securityContext"].get("runAsUser", user) == user
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert one["securityContext"]["allowPrivilegeEscalation"] is False
    own = build_manifest(task(run_as_user=2000), restricted=True)["spec"]
    assert {one["securityContext"]["runAsUser"] for one in own["containers"]} == {2000}


def test_names() -> None:
    """The same for everybody, of one attempt alone, and valid whatever a task is called."""
    name = pod_name("r", "loop/iteration-3/My Task_" + "x" * 200, 1)
    assert name == pod_name("r", "loop/iteration-3/My Task_" + "x" * 200, 1)
    assert name.startswith("clew-my-task-x")
    assert len(name) <= 63
    others = {pod_name("r", "t", 1), pod_name("r", "t", 2), pod_name("r", "u", 1)}
    assert len({*others, pod_name("s", "t", 1)}) == 4
    assert pod_name("r", "日本", 1).count("-") == 1

"""The settings of a Pod that a pipeline may have, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from clew.pipelines.spec import kubernetes_platform
from clew.pipelines.spec.cluster_settings import ClusterSettings, build_settings
from clew.pipelines.spec.document_part import InvalidPipeline, Part

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def build(fill: Callable[[Any], Any] = lambda value: value, **words: Any) -> ClusterSettings:
    return build_settings(Part(words, "exec"), fill)


def parse_and_build(values: dict[str, Any], **words: Any) -> ClusterSettings:
    """As for a task: parsed when the pipeline is read, filled when the task starts."""
    platform = kubernetes_platform.parse_platform(Part(words, "exec"), [])
    texts = {f"{{{{$.inputs.parameters['{name}']}}}}": values.get(name) for name in platform.inputs}
    return build_settings(
        Part(dict(platform.pod), platform.location), lambda value: texts.get(str(value), value)
    )


def test_metadata_images_and_users() -> None:
    found = build(
        podMetadata={"labels": {"team": "a"}, "annotations": {"note": "b c"}},
        imagePullPolicy="Always",
        imagePullSecret=[{"secretName": "registry"}],
        securityContext={"runAsUser": "1000", "runAsGroup": 100, "runAsNonRoot": True},
        enabledSharedMemory={"volumeName": "shm", "size": "1Gi"},
    )
    assert found == ClusterSettings(
        labels={"team": "a"},
        annotations={"note": "b c"},
        pull_policy="Always",
        pull_secrets=("registry",),
        run_as_user=1000,
        run_as_group=100,
        run_as_non_root=True,
        shared_memory="1Gi",
    )
    assert build() == ClusterSettings()
    assert build(enabledSharedMemory={"volumeName": "shm"}).shared_memory == ""


def test_tolerations() -> None:
    found = build(
        tolerations=[
            {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
            {"operator": "Exists"},
            {"key": "c", "effect": "NoExecute", "tolerationSeconds": "3600"},
        ]
    )
    assert found.tolerations == (
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        {"operator": "Exists"},
        {"key": "c", "effect": "NoExecute", "tolerationSeconds": 3600},
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"key": "a", "operator": "Exists"}, ({"key": "a", "operator": "Exists"},)),
        ([{"key": "a"}, {"operator": "Exists"}], ({"key": "a"}, {"operator": "Exists"})),
        ('[{"key": "a"}]', ({"key": "a"},)),
        ({}, ()),
        (None, ()),
    ],
)
def test_tolerations_from_an_input(given: Any, expected: tuple[Any, ...]) -> None:
    words = [{"tolerationJson": {"componentInputParameter": "which"}}]
    found = parse_and_build({"platform--0": given}, tolerations=words)
    assert found.tolerations == expected


def test_node_selectors() -> None:
    assert build(nodeSelector={"labels": {"disk": "ssd"}}).node_selector == {"disk": "ssd"}
    dynamic = {"nodeSelectorJson": {"componentInputParameter": "which"}, "labels": {"old": "x"}}
    found = parse_and_build({"platform--0": {"zone": "a"}}, nodeSelector=dynamic)
    assert found.node_selector == {"zone": "a"}  # it takes precedence
    constant = {"nodeSelectorJson": {"runtimeValue": {"constant": {"zone": "b"}}}}
    assert parse_and_build({}, nodeSelector=constant).node_selector == {"zone": "b"}


def test_a_pull_secret_from_an_input() -> None:
    words = [{"secretName": "", "secretNameParameter": {"componentInputParameter": "which"}}]
    found = parse_and_build({"platform--0": "registry"}, imagePullSecret=words)
    assert found.pull_secrets == ("registry",)


def test_affinity() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["node1"]}
    given = {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [zone]}]},
        PREFERRED: [{"weight": 1, "preference": {"matchFields": [name]}}],
    }
    found = parse_and_build(
        {"platform--0": given},
        nodeAffinity=[
            {"matchExpressions": [zone]},
            {"matchFields": [name], "weight": 5},
            {"nodeAffinityJson": {"componentInputParameter": "which"}},
        ],
        podAffinity=[
            {
                "matchPodLabels": {"app": "db"},
                "topologyKey": "kubernetes.io/hostname",
                "namespaces": ["me"],
            },
            {
                "matchPodExpressions": [{"key": "app", "operator": "Exists"}],
                "matchNamespaceLabels": {"team": "a"},
                "topologyKey": "zone",
                "weight": 100,
                "anti": True,
            },
        ],
    )
    assert found.affinity == {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [{"matchExpressions": [zone]}, {"matchExpressions": [zone]}]
            },
            PREFERRED: [
                {"weight": 5, "preference": {"matchFields": [name]}},
                {"weight": 1, "preference": {"matchFields": [name]}},
            ],
        },
        "podAffinity": {
            REQUIRED: [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "db"}},
                    "namespaces": ["me"],
                }
            ]
        },
        "podAntiAffinity": {
            PREFERRED: [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "zone",
                        "labelSelector": {
                            "matchExpressions": [{"key": "app", "operator": "Exists"}]
                        },
                        "namespaceSelector": {"matchLabels": {"team": "a"}},
                    },
                }
            ]
        },
    }


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"imagePullPolicy": "Sometimes"}, "exec.imagePullPolicy: Sometimes is not one of Always"),
        ({"securityContext": {"privileged": True}}, "exec.securityContext.privileged"),
        ({"securityContext": {"runAsUser": "-1"}}, "exec.securityContext.runAsUser"),
        ({"securityContext": {"runAsUser": 1e400}}, "exec.securityContext.runAsUser"),
        ({"securityContext": {"runAsNonRoot": "yes"}}, "exec.securityContext.runAsNonRoot"),
        ({"podMetadata": {"labels": {"a": 1}}}, "exec.podMetadata.labels.a: is not a string"),
        (
            {"podMetadata": {"labels": {"clew.dev/run": "x"}}},
            "exec.podMetadata.labels.clew.dev/run: is set by Clew",
        ),
        ({"podMetadata": {"finalizers": []}}, "exec.podMetadata.finalizers"),
        ({"nodeSelector": {"labels": ["a"]}}, "exec.nodeSelector.labels: not a mapping"),
        ({"tolerations": [{"effect": "Never", "key": "a"}]}, r"exec.tolerations\[0\].effect"),
        ({"tolerations": [{"value": "a"}]}, r"exec.tolerations\[0\].operator: must be Exists"),
        (
            {"tolerations": [{"key": "a", "tolerationSeconds": "soon"}]},
            r"exec.tolerations\[0\].tolerationSeconds: is not a whole number",
        ),
        ({"tolerations": [{"operator": "Exists"}] * 101}, "exec.tolerations: has more than 100"),
        ({"nodeAffinity": [{"weight": 101}]}, r"exec.nodeAffinity\[0\].weight"),
        (
            {"nodeAffinity": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]},
            r"exec.nodeAffinity\[0\].matchExpressions\[0\].operator: Like is not one of In",
        ),
        ({"podAffinity": [{"matchPodLabels": {"a": "b"}}]}, r"exec.podAffinity\[0\].topologyKey"),
        ({"enabledSharedMemory": {"path": "/x"}}, "exec.enabledSharedMemory.path"),
        (
            {"emptyDirMounts": [{"volumeName": "v", "mountPath": "/a", "medium": "HugePages"}]},
            r"exec.emptyDirMounts\[0\].medium: HugePages is not one of Memory",
        ),
        (
            {"genericEphemeralVolume": [{"volumeName": "v", "mountPath": "/a", "size": "much"}]},
            r"exec.genericEphemeralVolume\[0\].size",
        ),
        (
            {
                "genericEphemeralVolume": [
                    {"volumeName": "v", "mountPath": "/a", "accessModes": ["Once"]}
                ]
            },
            r"exec.genericEphemeralVolume\[0\].accessModes: Once is not one of ReadWriteOnce",
        ),
        ({"hostPath": []}, "exec.hostPath: is not supported"),
    ],
)
def test_what_is_refused_when_the_pipeline_is_read(words: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPipeline, match=place):
        kubernetes_platform.parse_platform(Part(words, "exec"), [])


@pytest.mark.parametrize(
    ("words", "given", "place"),
    [
        (
            {"tolerations": [{"tolerationJson": {"componentInputParameter": "x"}}]},
            "not JSON",
            r"exec.tolerations\[0\].tolerationJson: is not JSON",
        ),
        (
            {"tolerations": [{"tolerationJson": {"componentInputParameter": "x"}}]},
            [{"key": "a", "hostPath": "/"}],
            r"exec.tolerations\[0\].tolerationJson\[0\].hostPath",
        ),
        (
            {"nodeSelector": {"nodeSelectorJson": {"componentInputParameter": "x"}}},
            {"zone": 3},
            "exec.nodeSelector.nodeSelectorJson.zone: is not a string",
        ),
        (
            {"nodeSelector": {"nodeSelectorJson": {"componentInputParameter": "x"}}},
            [1],
            "exec.nodeSelector.nodeSelectorJson: not a mapping",
        ),
        (
            {"nodeAffinity": [{"nodeAffinityJson": {"componentInputParameter": "x"}}]},
            {"requiredSometimes": {}},
            r"exec.nodeAffinity\[0\].nodeAffinityJson.requiredSometimes",
        ),
    ],
)
def test_what_is_refused_when_the_task_starts(
    words: dict[str, Any], given: Any, place: str
) -> None:
    with pytest.raises(InvalidPipeline, match=place):
        parse_and_build({"platform--0": given}, **words)

"""Parsing the Kubernetes settings of a pipeline."""

from typing import Any

import pytest

from clew.pipelines.spec import ir, kubernetes_platform
from clew.pipelines.spec.document_part import InvalidPipeline, Part
from clew.pipelines.spec.ir import EnvVar, FromInput, FromTask, Input, Mount


def parse(**words: Any) -> ir.Platform:
    return kubernetes_platform.parse_platform(Part(words, "exec"), [])


def test_variables() -> None:
    found = parse(
        secretAsEnv=[
            {
                "secretName": "old",
                "secretNameParameter": {"componentInputParameter": "which"},
                "keyToEnv": [{"secretKey": "a", "envVar": "A"}, {"secretKey": "b", "envVar": "B"}],
            }
        ],
        configMapAsEnv=[
            {
                "configMapName": "map",
                "keyToEnv": [{"configMapKey": "c", "envVar": "C"}],
                "optional": True,
            }
        ],
    )
    name = "{{$.inputs.parameters['platform--0']}}"
    place = "exec.secretAsEnv[0]"
    assert found.env_vars == (
        EnvVar("A", "secret", name, "a", False, place),
        EnvVar("B", "secret", name, "b", False, place),
        EnvVar("C", "configmap", "map", "c", True, "exec.configMapAsEnv[0]"),
    )
    assert found.inputs == {"platform--0": Input(FromInput("which"))}


@pytest.mark.parametrize(
    ("written", "source"),
    [
        (
            {"taskOutputParameter": {"producerTask": "t", "outputParameterKey": "name"}},
            FromTask("t", "name"),
        ),
        ({"componentInputParameter": "which"}, FromInput("which")),
    ],
)
def test_older_fields_for_the_name_of_a_claim(written: dict[str, Any], source: Any) -> None:
    found = parse(pvcMount=[{**written, "mountPath": "/data/", "subPath": "a/b"}])
    assert found.inputs == {"platform--0": Input(source)}
    name = "{{$.inputs.parameters['platform--0']}}"
    assert found.mounts == (Mount("/data", "pvc", name, "a/b", False, "exec.pvcMount[0]"),)


def test_settings_without_effect_are_recorded() -> None:
    warnings: list[str] = []
    words = {"tolerations": [{"key": "k"}], "securityContext": {"runAsUser": "1"}}
    found = kubernetes_platform.parse_platform(
        Part({**words, "activeDeadlineSeconds": "7"}, "exec"), warnings
    )
    assert (found.pod, found.deadline) == (words, 7)
    assert warnings == [kubernetes_platform.USER_WARNING]
    assert parse(activeDeadlineSeconds="0").deadline is None


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"initContainers": []}, "exec.initContainers"),
        ({"secretAsEnv": [{"secretName": "a", "more": 1}]}, r"exec.secretAsEnv\[0\].more"),
        ({"secretAsEnv": {}, "x": 1}, "exec.x"),
        (
            {"fieldPathAsEnv": [{"name": "A", "fieldPath": "status.phase"}]},
            r"exec.fieldPathAsEnv\[0\].fieldPath: status.phase is not available",
        ),
        (
            {"emptyDirMounts": [{"volumeName": "v", "mountPath": "data"}]},
            r"exec.emptyDirMounts\[0\].mountPath: data is not an absolute path",
        ),
        (
            {"pvcMount": [{"constant": "c", "mountPath": "/a", "subPath": "../b"}]},
            r"exec.pvcMount\[0\].subPath: ../b leads out of the volume",
        ),
        ({"activeDeadlineSeconds": "soon"}, "exec.activeDeadlineSeconds"),
    ],
)
def test_unsupported_settings_are_refused(words: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPipeline, match=place):
        parse(**words)

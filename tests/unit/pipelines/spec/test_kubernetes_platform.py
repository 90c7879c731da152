"""What a pipeline asks of a cluster, what stands for it here, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.errors import ClewError, NotFound, UsageError
from clew.pipelines.spec import kubernetes_platform
from clew.pipelines.spec.document_part import InvalidPipeline, Part
from clew.pipelines.spec.ir import EnvVar, FromInput, FromTask, Input, Mount
from clew.pipelines.tasks import platform_file
from clew.pipelines.tasks.volumes import VolumeError, Volumes
from clew.project_directory import create


def said(**words: Any) -> kubernetes_platform.Platform:
    return kubernetes_platform.parse_platform(Part(words, "exec"), [])


def test_variables() -> None:
    found = said(
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
def test_older_ways_to_name_a_claim(written: dict[str, Any], source: Any) -> None:
    found = said(pvcMount=[{**written, "mountPath": "/data/", "subPath": "a/b"}])
    assert found.inputs == {"platform--0": Input(source)}
    name = "{{$.inputs.parameters['platform--0']}}"
    assert found.mounts == (Mount("/data", "pvc", name, "a/b", False, "exec.pvcMount[0]"),)


def test_what_has_no_effect_is_kept() -> None:
    warnings: list[str] = []
    words = {"tolerations": [{"key": "k"}], "securityContext": {"runAsUser": "1"}}
    found = kubernetes_platform.parse_platform(
        Part({**words, "activeDeadlineSeconds": "7"}, "exec"), warnings
    )
    assert (found.ignored, found.deadline) == (words, 7)
    assert warnings == [kubernetes_platform.USER_WARNING]
    assert said(activeDeadlineSeconds="0").deadline is None


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ({"initContainers": []}, "exec.initContainers"),
        ({"secretAsEnv": [{"secretName": "a", "more": 1}]}, r"exec.secretAsEnv\[0\].more"),
        ({"secretAsEnv": {}, "x": 1}, "exec.x"),
        (
            {"fieldPathAsEnv": [{"name": "A", "fieldPath": "status.podIP"}]},
            r"exec.fieldPathAsEnv\[0\].fieldPath: status.podIP is not available here",
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
def test_what_is_refused(words: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPipeline, match=place):
        said(**words)


def mapped(tmp_path: Path, text: str, **environ: str) -> platform_file.PlatformMapping:
    file = tmp_path / platform_file.FILE_NAME
    file.write_text(text)
    return platform_file.load_mapping(tmp_path / "pipeline.yaml", None, environ)


def test_what_stands_for_a_name(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"\xff-bytes-\n")
    text = """
    [secrets.s]
    one = { env = "ONE" }
    two = { file = "file" }
    [configmaps.m]
    key = "value"
    [pvcs]
    p = "folder"
    """
    found = mapped(tmp_path, text, ONE="of six characters")
    assert found.keys("secret", "s") == {"one": b"of six characters", "two": b"\xff-bytes-\n"}
    assert found.keys("configmap", "m") == {"key": b"value"}
    assert found.claims == {"p": tmp_path / "folder"}
    assert found.keys("secret", "m") is None
    assert platform_file.load_mapping(tmp_path / "else" / "x.yaml", None, {}).claims == {}
    with pytest.raises(NotFound):
        platform_file.load_mapping(tmp_path / "x.yaml", tmp_path / "none.toml", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[secret.s]", "secret: unknown table"),
        ("[secrets]\ns = 1", "secrets.s: is not a table"),
        ("[configmaps.m]\nk = 1", "configmaps.m.k: is not a string"),
        ("[pvcs]\np = 'nowhere'", "pvcs.p: there is no directory"),
        ("[pvcs", "cannot be read"),
    ],
)
def test_a_mapping_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mapped(tmp_path, text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("'the value itself'", "must be"),
        ("{ env = 'NONE' }", "the variable NONE is not set"),
        ("{ env = 'SHORT' }", "is shorter than 6 characters"),
        ("{ file = 'none' }", "none cannot be read"),
        ("{ vault = 'x' }", "must be"),
    ],
)
def test_a_secret_that_cannot_be_had(tmp_path: Path, value: str, message: str) -> None:
    found = mapped(tmp_path, f"[secrets.s]\nk = {value}\n[secrets.t]\nk = {{env='LONG'}}",
                   SHORT="12345", LONG="123456")  # fmt: skip
    assert found.keys("secret", "t") == {"k": b"123456"}  # nobody asked for the other
    with pytest.raises(ClewError, match=message) as raised:
        found.keys("secret", "s")
    assert "12345" not in str(raised.value)


def test_claims_are_made_once_and_only_they_are_deleted(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    volumes = Volumes(
        platform_file.PlatformMapping(tmp_path, claims={"own": own}),
        create(tmp_path),
        tmp_path / "r",
        "u",
    )
    volumes.create("made")
    assert (tmp_path / "pipeline-volumes" / "made").is_dir()
    for name in ("made", "own", "../out", ""):
        with pytest.raises(VolumeError):
            volumes.create(name)
    for name in ("own", "none", "..", "a/../../own"):
        with pytest.raises(VolumeError):
            volumes.delete(name)
    volumes.delete("made")
    assert own.is_dir()
    assert list((tmp_path / "pipeline-volumes").iterdir()) == []


def test_links_are_shared_and_go_with_the_last(tmp_path: Path) -> None:
    volumes = Volumes(
        platform_file.PlatformMapping(tmp_path), create(tmp_path), tmp_path / "run", "u"
    )
    path, target = tmp_path / "some" / "where", tmp_path / "target"
    places = frozenset({(str(path), str(target))})
    volumes.mount(places)
    volumes.mount(places)
    volumes.unmount(places)
    assert path.samefile(target)
    volumes.unmount(places)
    assert not (tmp_path / "some").exists()
    assert target.is_dir()
    volumes.mount(places)
    volumes.close()
    assert not (tmp_path / "some").exists()


def test_in_an_image_a_volume_needs_no_link(tmp_path: Path) -> None:
    volumes = Volumes(
        platform_file.PlatformMapping(tmp_path), create(tmp_path), tmp_path / "run", "u"
    )
    places = frozenset({(str(tmp_path / "path"), str(tmp_path / "target"))})
    volumes.unmount(volumes.mount(places, mounted=True))
    assert not (tmp_path / "path").exists()
    assert (tmp_path / "target").is_dir()
    volumes.unmount(volumes.mount(places))
    assert not (tmp_path / "path").exists()


def test_a_link_takes_nobody_s_place(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    first = (str(tmp_path / "a"), str(tmp_path / "target"))
    places = frozenset({first, (str(tmp_path / "there"), str(tmp_path / "target"))})
    volumes = Volumes(
        platform_file.PlatformMapping(tmp_path), create(tmp_path), tmp_path / "run", "u"
    )
    with pytest.raises(VolumeError, match="there: File exists"):
        volumes.mount(places)
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "a").exists()
    volumes.mount(frozenset({first}))
    assert (tmp_path / "a").samefile(tmp_path / "target")
    volumes.close()

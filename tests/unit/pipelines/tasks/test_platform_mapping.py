"""The file that maps names of a cluster to this machine."""

from pathlib import Path

import pytest

from clew.errors import ClewError, NotFound, UsageError
from clew.pipelines.tasks import platform_mapping


def load(tmp_path: Path, text: str, **environ: str) -> platform_mapping.PlatformMapping:
    file = tmp_path / platform_mapping.FILE_NAME
    file.write_text(text)
    return platform_mapping.load_mapping(tmp_path / "pipeline.yaml", None, environ)


def test_mapping_of_names(tmp_path: Path) -> None:
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
    found = load(tmp_path, text, ONE="of six characters")
    assert found.keys("secret", "s") == {"one": b"of six characters", "two": b"\xff-bytes-\n"}
    assert found.keys("configmap", "m") == {"key": b"value"}
    assert found.claims == {"p": tmp_path / "folder"}
    assert found.keys("secret", "m") is None
    assert platform_mapping.load_mapping(tmp_path / "else" / "x.yaml", None, {}).claims == {}
    with pytest.raises(NotFound):
        platform_mapping.load_mapping(tmp_path / "x.yaml", tmp_path / "none.toml", {})


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
def test_invalid_mapping_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(tmp_path, text)


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
def test_unavailable_secrets(tmp_path: Path, value: str, message: str) -> None:
    found = load(tmp_path, f"[secrets.s]\nk = {value}\n[secrets.t]\nk = {{env='LONG'}}",
                   SHORT="12345", LONG="123456")  # fmt: skip
    assert found.keys("secret", "t") == {"k": b"123456"}  # nobody asked for the other
    with pytest.raises(ClewError, match=message) as raised:
        found.keys("secret", "s")
    assert "12345" not in str(raised.value)

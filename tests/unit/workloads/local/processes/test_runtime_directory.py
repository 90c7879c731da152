"""The directory of sockets: private, short, and removed by the next server if need be."""

from pathlib import Path

import pytest

from clew.workloads.local.processes.runtime_directory import RuntimeDirectory


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def test_it_is_private_and_goes_at_the_end(tmp_path: Path, temporary: Path) -> None:
    runtime = RuntimeDirectory(tmp_path / "record")
    assert runtime.path.stat().st_mode & 0o077 == 0
    runtime.close()
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "record").exists()


def test_that_of_a_killed_server_is_removed(tmp_path: Path, temporary: Path) -> None:
    (RuntimeDirectory(tmp_path / "record").path / "socket").touch()
    runtime = RuntimeDirectory(tmp_path / "record")
    assert list(temporary.iterdir()) == [runtime.path]


@pytest.mark.parametrize("named", ["clew-link", "other", "../precious", "/", "", "\0", "x" * 5000])
def test_a_damaged_record_removes_nothing_else(tmp_path: Path, temporary: Path, named: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "x").touch()
    (temporary / "clew-link").symlink_to(precious)
    (temporary / "other").mkdir()
    (tmp_path / "record").write_text(str(temporary / named) if named else "")
    RuntimeDirectory(tmp_path / "record").close()
    assert (precious / "x").exists()
    assert (temporary / "other").exists()

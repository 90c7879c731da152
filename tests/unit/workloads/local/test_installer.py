"""Programs are found, and installed by a real pip from a directory of wheels."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.wait import wait_until

from clew.documents.workloads.workload import ProgramInstallation
from clew.errors import NotFound
from clew.workloads.local import installer
from clew.workloads.local.installer import (
    Installer,
    Interpreters,
    explain,
    install_commands,
    share_packages,
)


def make_wheel(directory: Path, name: str, version: str = "9.9") -> None:
    """A package with one empty module."""
    directory.mkdir(exist_ok=True)
    metadata = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{metadata}/RECORD": "",
    }
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip finds packages. The server's own environment stays as it is."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setattr(installer, "_has_writable_environment", lambda: False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


def finish(programs: Installer, name: str) -> ProgramInstallation:
    wait_until("the installation", lambda: programs.get(name).state != "installing")
    return programs.get(name)


def test_a_program_is_installed_and_found(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try fails, because there is no such package; what it left does no harm."""
    monkeypatch.setenv("CLEW_TOKEN", "precious")
    changes: list[None] = []
    interpreters = Interpreters(tmp_path / "programs")
    programs = Installer(
        tmp_path / "programs", interpreters, on_change=lambda: changes.append(None)
    )
    assert programs.get("tensorboard").state == "missing"
    programs.install("tensorboard")
    failed = finish(programs, "tensorboard")
    assert failed.state == "failed"
    assert failed.error is not None
    assert "No matching distribution found for tensorboard" in failed.error

    make_wheel(wheels, "tensorboard")
    assert programs.install("tensorboard").state == "installing"
    installed = finish(programs, "tensorboard")
    assert (installed.state, installed.error) == ("installed", None)
    assert "Successfully installed tensorboard-9.9" in installed.output
    assert changes
    assert interpreters.version("tensorboard") == "9.9"
    python = interpreters.find("tensorboard")
    assert python == str(tmp_path / "programs" / "bin" / "python")
    seen = subprocess.run(
        [python, "-c", "import tensorboard, msgspec"], capture_output=True, text=True
    )
    assert seen.returncode == 0, f"it does not see the server's packages: {seen.stderr}"
    assert programs.install("tensorboard").state == "installed", "nothing is done twice"


def test_the_end_of_the_server_ends_an_installation(tmp_path: Path, wheels: Path) -> None:
    programs = Installer(
        tmp_path / "programs", Interpreters(tmp_path / "programs"), on_change=lambda: None
    )
    programs.install("tensorboard")
    wait_until("its start", lambda: "-m venv" in programs.get("tensorboard").output)
    programs.close()
    assert finish(programs, "tensorboard").state == "failed"


def test_unknown_programs_are_refused(tmp_path: Path) -> None:
    programs = Installer(
        tmp_path / "programs", Interpreters(tmp_path / "programs"), on_change=lambda: None
    )
    for name in ("", "pip", "../x", "tensorboard; rm -rf /"):
        with pytest.raises(NotFound):
            programs.install(name)


def test_an_environment_of_its_own_is_made_only_if_need_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "_has_writable_environment", lambda: True)
    (command,) = install_commands(tmp_path, ["x"])
    assert command[0] == sys.executable
    monkeypatch.setattr(installer, "_has_writable_environment", lambda: False)
    assert len(install_commands(tmp_path, ["x"])) == 2
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    assert len(install_commands(tmp_path, ["x"])) == 2, "it has no pip"
    (tmp_path / "bin" / "pip").touch()
    assert len(install_commands(tmp_path, ["x"])) == 1


def test_a_base_interpreter_shares_its_packages_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib" / "python3" / "site-packages").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    share_packages(tmp_path)
    assert list((tmp_path / "lib" / "python3" / "site-packages").iterdir()) == []


def test_a_failure_is_explained() -> None:
    assert explain("$ pip\nERROR: first\nERROR: no such thing\nbye\n", 1).endswith(
        "status 1: no such thing"
    )
    assert "apt install python3-venv" in explain(
        "$ venv\nno ensurepip:\n apt install python3-venv\n", 1
    )
    assert explain("", 1) == "the installation failed with status 1"

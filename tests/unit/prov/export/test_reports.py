import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from clew.prov.export.requirements_reports import (
    format_readme,
    format_requirements,
    format_system_packages,
)


def owned(
    manager: str,
    name: str,
    version: str,
    requested: bool | None,
    path: str = "/x/code.py",
    **more: str,
) -> Any:
    package = {"manager": manager, "name": name, "version": version, "requested": requested}
    return {"path": path, "role": "input", "class": "package", "package": package | more}


FILES = [
    owned("pypi", "pandas", "2.2.0", True),
    owned("pypi", "pandas", "2.2.0", True),
    owned("pypi", "numpy", "1.26.4", False, "/v/lib/numpy/core/_multiarray.so"),
    owned("pypi", "mypy", "1.9", True, "/v/site-packages/mypy-1.9.dist-info/METADATA"),
    owned("pypi", "setuptools", "84", True, "/v/site-packages/_distutils_hack/__init__.py"),
    owned("pypi", "clew", "1", True, "/v/site-packages/clew/pipelines/tasks/launcher.py"),
    owned("pypi", "certifi", "1", True, "/v/site-packages/certifi/cacert.pem"),
    owned("pypi", "clew", "1", True, "/v/site-packages/__editable__.clew-0.1.0.pth"),
    owned("pypi", "ours", "0.1", None, url="git+https://h/ours.git@abc"),
    owned("deb", "curl", "7.88.1-10+deb12u5", True, arch="amd64"),
    owned("deb", "adduser", "3.134", True, arch="all"),
    owned("deb", "libc6", "2.36-9", False, arch="amd64"),
    owned("deb", "libc6", "2.36-9", True, arch="i386"),
    owned("deb", "dash", "0.5", True, arch="amd64"),
    owned("rpm", "gcc", "1:13.2-1", True, arch="x86_64"),
    {"path": "/w/train.py", "role": "input", "class": "source", "size": 10, "package": None},
    {"path": "/w/raw`.csv", "role": "input", "class": "data", "size": 12345, "digest": "blake3:ab"},
    {"path": "/w/model.bin", "role": "output", "class": "data", "size": None},
    {"path": "/w/tmp", "role": "transient", "class": "data"},
]


def test_requirements_list_requested_packages_first() -> None:
    lines = [line for line in format_requirements(FILES).splitlines() if line]
    assert [line for line in lines if not line.startswith("#")] == [
        "ours @ git+https://h/ours.git@abc",
        "pandas==2.2.0",
        "numpy==1.26.4",
    ]
    assert lines[-2].startswith("# Installed as dependencies")


def test_pip_takes_the_requirements(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(format_requirements([]))
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "-r", str(file)]
    assert subprocess.run(command, capture_output=True).returncode == 0
    file.write_text(format_requirements([owned("pypi", "pip-no-such", "1+cu.1", True)]))
    done = subprocess.run(command, capture_output=True, text=True)
    assert "pip-no-such==1+cu.1" in done.stderr


def test_system_packages_are_commands_a_shell_takes() -> None:
    text = format_system_packages(FILES)
    commands = [shlex.split(c, comments=True) for c in text.replace("\\\n", " ").split("\n")]
    assert [command for command in commands if command] == [
        [
            "apt-get",
            "install",
            "--yes",
            "adduser=3.134",
            "curl=7.88.1-10+deb12u5",
            "dash=0.5",
            "libc6:i386=2.36-9",
        ],
        ["dnf", "install", "--assumeyes", "gcc-1:13.2-1.x86_64"],
    ]
    assert "#   libc6=2.36-9" in text
    assert format_system_packages([]) == ""


def test_a_readme_tells_what_ran_and_what_it_needs() -> None:
    execution = {
        "id": "e2",
        "name": "train",
        "command": ["python", "train.py", "--name", "a b"],
        "cwd": "/w/my project",
        "agent": "ada",
        "started": "2026-01-02T03:04:05Z",
        "seconds": 12.34,
        "status": 0,
        "git": {"commit": "c0ffee", "dirty": True},
        "environment": {"redacted": ["API_TOKEN"]},
    }
    text = format_readme(execution, FILES)
    assert text.startswith("## train\n")
    assert "cd '/w/my project'\npython train.py --name 'a b'" in text
    assert "`e2` on 2026-01-02T03:04:05Z by ada in 12.3 s." in text
    assert "commit `c0ffee` with changes" in text
    code, rest = text.split("### Code")[1].split("### Inputs")
    inputs, outputs = rest.split("### Outputs")
    assert "/w/train.py" in code
    assert "`/w/raw'.csv` (12,345 bytes, blake3:ab)" in inputs
    assert "/w/model.bin" in outputs
    assert "/w/tmp" not in text
    assert "pandas==2.2.0" in text
    assert "apt-get install" in text
    assert "`API_TOKEN`" in text


def test_a_readme_of_little_is_short() -> None:
    text = format_readme({"command": ["true"], "cwd": "/"}, [])
    assert text == "## true\n\nRecorded.\n\n```sh\ncd /\ntrue\n```\n"


def test_many_files_are_counted() -> None:
    many = [{"path": f"/w/{n}", "role": "output", "class": "data", "size": 1} for n in range(1000)]
    assert "- and 980 more" in format_readme({"command": ["x"]}, many)

"""`clew kernel install`, and the kernel as Jupyter's own client sees it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import Project

CLIENT = Path(__file__).parent / "programs" / "kernel_client.py"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_install_writes_a_kernel_beside_the_stock_one(project: Project) -> None:
    installed = project.json("kernel", "install", "--prefix", project / "prefix", "--json")
    assert installed["display_name"] == "Python 3 (Clew)"
    place = project / "prefix/share/jupyter/kernels/clew-python3"
    assert installed["path"] == str(place)
    spec = json.loads((place / "kernel.json").read_text())
    assert spec["argv"][-2:] == ["-f", "{connection_file}"]
    data = {**project.environment, "JUPYTER_DATA_DIR": str(project / "data")}
    assert project.command("kernel", "install", "--user", env=data).returncode == 0
    assert (project / "data/kernels/clew-python3/kernel.json").exists()
    assert project.command("kernel", "install", "--user", "--sys-prefix").returncode == 2
    other = project.command("kernel", "install", "--python", "/bin/sh")
    assert b"cannot run notebooks" in other.stderr


def test_cells_are_recorded_and_behave_as_in_the_stock_kernel(project: Project) -> None:
    project("kernel", "install", "--prefix", project / "used", "--python", sys.executable)
    cells = [
        "file = open('made.txt', 'w')\nfile.write('x')\nfile.close()\nprint('printed')",
        "6 * 7",
        "raise ValueError('wrong')",
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass",
        "'still here'",
    ]
    kernels = project / "used/share/jupyter/kernels"
    ran = subprocess.run(
        [sys.executable, CLIENT, kernels, *cells],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        timeout=240,
        stdin=subprocess.DEVNULL,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    results = json.loads(ran.stdout.splitlines()[-1])
    assert [one["state"] for one in results] == ["ran", "ran", "failed", "failed", "ran"]
    assert [one["error"] for one in results[2:4]] == ["ValueError", "KeyboardInterrupt"]
    assert results[0]["printed"] == "printed\n"
    assert results[1]["printed"] == "42"
    assert results[4]["printed"] == "'still here'"
    traced = project.json("trace", "made.txt", "--json")
    assert "cell" in [node["label"] for node in traced["nodes"]]

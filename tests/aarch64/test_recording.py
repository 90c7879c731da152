"""The aarch64 wheel in an emulated machine records, traces and repeats as this machine does."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.aarch64_vm import disk, machine

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM, STEPS = HERE / "workload.py", HERE / "steps.py"

pytestmark = pytest.mark.aarch64


def run_here(folder: Path) -> dict[str, Any]:
    shutil.copy(STEPS, folder)
    subprocess.run(
        ["python3", PROGRAM, Path(sys.executable).with_name("clew")],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": os.fspath(folder), "LC_ALL": "C.UTF-8"},
        check=True,
    )
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def run_emulated(folder: Path) -> dict[str, Any]:
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"),
            *("-w", folder, ROOT),
        ],
        env={**os.environ, "_PYTHON_HOST_PLATFORM": "linux-aarch64"},
        check=True,
    )
    vm = ROOT / "build/aarch64"
    wheel = next(folder.glob("*_aarch64.whl"))
    disk.make_disk(vm, wheel=wheel, program=PROGRAM, files=[STEPS])
    summary: dict[str, Any] = json.loads((machine.run(vm) / "summary.json").read_text())
    return summary


def test_records_equal_those_of_this_machine(tmp_path: Path) -> None:
    here, emulated = tmp_path / "here", tmp_path / "emulated"
    here.mkdir()
    expected, found = run_here(here), run_emulated(emulated)
    assert found.pop("architecture") == "aarch64"
    assert found.pop("package architecture") == "arm64"
    assert expected.pop("architecture") == os.uname().machine
    expected.pop("package architecture")
    assert found == expected
    assert {verdict for verdict, *_ in found["repetitions"]} == {"identical"}

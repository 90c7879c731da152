"""What pipelines ask of the machine, and of Kubernetes, when they are run here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.local.programs.recording import HERE, Project


@pytest.fixture(scope="session")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every pipeline of `programs/platforms.py` is, compiled."""
    folder = tmp_path_factory.mktemp("platforms")
    words = [sys.executable, "-W", "ignore", HERE / "platforms.py", folder]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def run(project: Project, *words: str | Path, status: int = 0) -> tuple[dict[str, Any], str]:
    """The run's document, and what was said beside it."""
    ran = project.command("pipeline", "run", *words, "--json")
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document, ran.stderr.decode()


def test_tasks_wait_until_they_fit(project: Project, platforms: Path, tmp_path: Path) -> None:
    total = next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal:")
    )
    folder = tmp_path / "spans"
    folder.mkdir()
    given = ("-p", f"folder={folder}", "-p", f"memory={total * 6 // 10}Ki")
    _, said = run(project, platforms / "crowding.yaml", *given)
    spans = {file.name: tuple(map(float, file.read_text().split())) for file in folder.iterdir()}
    assert sorted(spans) == ["a", "b", "c", "chips", "cores", "d"]

    def together(one: str, other: str) -> bool:
        return spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]

    assert not together("a", "b")  # there is memory for one of them
    assert together("c", "d")  # two tenths of a core
    for alone in ("cores", "chips"):
        assert not any(together(alone, other) for other in spans if other != alone)
    assert "runs alone: it asks for more than this machine has: 5000 cores of" in said
    assert "64 accelerators of" in said


def test_what_is_asked_for_may_be_wrong_only_when_it_is_known(
    project: Project, platforms: Path, tmp_path: Path
) -> None:
    given = ("-p", f"folder={tmp_path}", "-p", "cpu=many")
    document, _ = run(project, platforms / "asking.yaml", *given, status=1)
    assert "'many' is no quantity" in document["tasks"][0]["error"]
    given = ("-p", f"folder={tmp_path}", "-p", "cpu=100m")
    document, _ = run(project, platforms / "asking.yaml", *given)
    assert document["state"] == "succeeded"

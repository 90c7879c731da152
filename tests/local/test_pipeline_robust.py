"""Tasks that misbehave do not take the run, its record or other tasks with them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.processes import as_root, mounted
from tests.local.programs.compiling import HERE, run_script
from tests.local.test_cmd_pipeline import answer, run, states, tasks


@pytest.fixture(scope="session")
def troubles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("troubles") / "troubles.yaml"
    run_script(HERE / "troubles.py", file)
    return file


def trouble(project: Project, file: Path, kind: str, *words: str, status: int) -> dict[str, Any]:
    return run(project, file, "-p", f"kind={kind}", *words, status=status)


@pytest.mark.parametrize(
    ("kind", "error"),
    [("crash", "signal 11"), ("exit", "status 1"), ("worker", "signal 9")],
)
def test_a_task_that_ends_badly(project: Project, troubles: Path, kind: str, error: str) -> None:
    document = trouble(project, troubles, kind, status=1)
    found = tasks(document)
    assert error in found["trouble"]["error"]
    assert found["after"]["state"] == "skipped"
    if kind != "worker":
        assert document["outputs"] == {}
        assert found["length"]["state"] == "succeeded"
    if kind == "exit":
        log = project.command("pipeline", "logs", "r1/trouble").stdout
        assert b"these are its last words" in log
    assert project.command("fsck").returncode == 0
    assert run(project, troubles, "-p", "kind=none")["state"] == "succeeded"


def test_a_process_forked_ahead_begins_with_its_task(project: Project, troubles: Path) -> None:
    document = trouble(project, troubles, "none", status=0)
    for task in document["tasks"]:
        shown = answer(project, "show", task["execution"])
        assert task["started"] <= shown["started"] <= shown["tree"][0]["started"]
        assert shown["tree"][0]["started"] < shown["ended"] <= task["ended"]


def test_unlimited_output(project: Project, troubles: Path) -> None:
    document = trouble(project, troubles, "endless", status=0)
    assert document["outputs"] == {"Output": 1}
    found = tasks(document)["trouble"]
    shown = answer(project, "show", found["execution"], "--detail")
    printed = next(one for one in shown["files"] if one["path"] == "stdout")
    assert printed["size"] > 64 << 20
    assert project.command("pipeline", "logs", "r1/trouble").returncode != 0  # its digest alone


def test_background_processes_end_with_their_task(
    project: Project, troubles: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    document = trouble(project, troubles, "daemon", "-p", f"mark={mark}", status=0)
    assert set(states(document).values()) == {"succeeded"}
    stat = Path(f"/proc/{mark.read_text()}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_a_parameter_of_fifty_megabytes(project: Project, troubles: Path) -> None:
    count = 50 << 20
    document = trouble(project, troubles, "none", "-p", f"count={count}", status=0)
    assert document["outputs"] == {"Output": count}


def test_two_concurrent_runs(project: Project, troubles: Path) -> None:
    words = [*CLEW, "pipeline", "run", troubles, "--json", "-p"]
    both = [
        subprocess.Popen(
            [*words, f"kind=none{number}"],
            cwd=project.folder,
            env=project.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for number in range(2)
    ]
    documents = [json.loads(process.communicate()[0]) for process in both]
    assert [document["state"] for document in documents] == ["succeeded"] * 2
    assert {document["id"] for document in documents} == {"r1", "r2"}
    assert project.command("fsck").returncode == 0


def test_a_read_only_working_directory(project: Project, troubles: Path, tmp_path: Path) -> None:
    """What cannot be begun says so, and nothing is left half-made."""
    (project / "pipeline-runs").write_text("in the way")
    refused = project.command("pipeline", "run", troubles, "-p", "kind=none", "--json")
    assert refused.returncode not in (0, 1), refused.stderr
    assert b"Traceback" not in refused.stderr
    assert json.loads(refused.stdout)["error"]["hint"]


FILLING = """
from kfp import dsl

@dsl.component
def fill(path: str) -> int:
    try:
        with open(path, "xb", buffering=0) as file:
            while True:
                file.write(bytes(65536))
    except OSError:
        return 1

@dsl.pipeline(name="filling")
def filling(path: str) -> int:
    return fill(path=path).output
"""


@as_root
def test_a_task_that_fills_the_disk(tmp_path: Path) -> None:
    """It ends, says why, and is gone on with when there is room."""
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=48m", "tmpfs"):
        project = Project(tmp_path / "small")
        (project / "filling.py").write_text(FILLING)
        big = tmp_path / "small" / "big"
        refused = project.command(
            "pipeline", "run", "filling.py", "-p", f"path={big}", "--json", timeout=100
        )
        assert refused.returncode == 1
        error = json.loads(refused.stdout)["error"]
        assert (error["code"], "o space" in error["message"]) == ("disk-full", True), error
        big.write_bytes(b"")
        assert answer(project, "pipeline", "show", "r1")["state"] == "failed"
        assert project.command("fsck").returncode == 0
        resumed = project.command("pipeline", "resume", "r1", "--json", timeout=100)
        assert json.loads(resumed.stdout)["outputs"] == {"Output": 1}

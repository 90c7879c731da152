"""Components with packages: one virtual environment for each set of packages."""

import fcntl
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.wheels import Index

PIPELINE = """
from kfp import dsl
here = dict(packages_to_install=["clewtest"], pip_index_urls=["{index}"],
            pip_trusted_hosts=["127.0.0.1"])

@dsl.component(**here)
def version(n: int) -> str:
    import clewtest, shutil
    return f"{{clewtest.VERSION}} {{clewtest.__file__}} {{shutil.which('python3')}}"

@dsl.component(use_venv=True, **here)
def version_of_venv() -> str:
    import clewtest
    return clewtest.VERSION

@dsl.component
def none() -> str:
    import importlib.util
    return str(importlib.util.find_spec("clewtest"))

@dsl.pipeline
def packages(n: int = 1):
    version(n=n)
    version(n=0)
    version_of_venv()
    none()
"""
MISSING = """
from kfp import dsl

@dsl.component(packages_to_install=["clewtest==9"], pip_index_urls=["{index}"],
               pip_trusted_hosts=["127.0.0.1"])
def needs() -> str:
    return "never"

@dsl.pipeline
def missing():
    needs()
"""
NOTEBOOK = """
from kfp import dsl
from kfp.dsl import Dataset, Output

@dsl.notebook_component(notebook_path="count.ipynb")
def count(text: str, made: Output[Dataset]) -> int:
    dsl.run_notebook(text=text, made=made.path)
    with open(made.path) as file:
        return int(file.read())

@dsl.pipeline
def noted(text: str = "abc") -> int:
    return count(text=text).outputs["Output"]
"""
CELLS = [
    ("text = ''\nmade = ''\n", ["parameters"]),
    ("open(made, 'w').write(str(len(text)))\n", []),
]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    found = Index(tmp_path)
    with found.serving():
        yield found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))


def run(project: Project, file: str, *words: str, status: int = 0) -> tuple[dict[str, Any], str]:
    ran = project.command("pipeline", "run", file, *words, "--json")
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    return json.loads(ran.stdout), ran.stderr.decode()


def outputs(document: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["outputs"].get("Output") for task in document["tasks"]}


def test_one_environment_for_each_set(project: Project, index: Index, tmp_path: Path) -> None:
    (project / "packages.py").write_text(PIPELINE.format(index=index.address))
    document, said = run(project, "packages.py")
    assert said.count("installing clewtest in") == 1
    [built] = (path for path in (tmp_path / "cache/clew/venvs").iterdir() if path.is_dir())
    found = outputs(document)
    version, module, python = found["version"].split()
    assert (version, found["version-of-venv"], found["none"]) == ("1.0", "1.0", "None")
    assert Path(module).is_relative_to(built)
    assert python == str(built / "bin" / "python3")
    document, said = run(project, "packages.py", "-p", "n=2")
    assert "installing" not in said
    states = {task["name"]: task["state"] for task in document["tasks"]}
    assert (states["version"], states["version-of-venv"]) == ("succeeded", "reused")


def test_a_failing_install_is_the_failure_of_its_task(project: Project, index: Index) -> None:
    (project / "missing.py").write_text(MISSING.format(index=index.address))
    document, _ = run(project, "missing.py", status=1)
    assert "No matching distribution found for clewtest==9" in document["tasks"][0]["error"]


def test_concurrent_and_killed_builds_of_an_environment(project: Project, index: Index) -> None:
    (project / "packages.py").write_text(PIPELINE.format(index=index.address))
    words = [*CLEW, "pipeline", "run", "packages.py"]
    more: dict[str, Any] = {"cwd": project.folder, "env": project.environment, "text": True}
    index.opened.clear()
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, **more) as killed:
        assert index.asked.wait(60)
        killed.kill()
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, **more) for _ in range(2)]
    index.opened.set()  # the killed one's pip goes on, too
    said = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sum(text.count("installing clewtest in") for text in said) == 1


def test_cancel_stops_an_install(project: Project, index: Index, tmp_path: Path) -> None:
    (project / "packages.py").write_text(PIPELINE.format(index=index.address))
    words = ["env", "--default-signal=INT", *CLEW, "pipeline", "run", "packages.py"]
    index.opened.clear()
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stderr=subprocess.DEVNULL
    ) as process:
        assert index.asked.wait(60)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    [lock] = (tmp_path / "cache/clew/venvs").glob("*.lock")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # no installer is left that holds it


@pytest.mark.heavy
def test_a_notebook_component(project: Project) -> None:
    cells = [
        {"cell_type": "code", "source": source, "metadata": {"tags": tags}, "outputs": [],
         "execution_count": None, "id": f"c{number}"}
        for number, (source, tags) in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (project / "count.ipynb").write_text(json.dumps(notebook))
    (project / "noted.py").write_text(NOTEBOOK)
    document, said = run(project, "noted.py", "-p", "text=four")
    assert document["outputs"] == {"Output": 4}
    assert "installing" in said
    assert "ipykernel" in said
    made = project.command("cat", "r1/count:made")
    assert made.stdout == b"4"

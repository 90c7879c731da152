"""Restore, diff and reproduce runs, tasks and artifacts: files and directories."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.programs.compiling import compile_pipeline
from tests.local.test_cmd_pipeline import answer, run, states

PIPELINE = """
from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

@dsl.component
def make(text: str, data: Output[Dataset]):
    open(data.path, "w").write(f"first\\n{text}\\n")

@dsl.component
def train(data: Input[Dataset], model: Output[Model]):
    import os
    os.makedirs(model.path + "/weights")
    open(model.path + "/kind", "w").write("linear")
    open(model.path + "/weights/0", "w").write(open(data.path).read())

@dsl.pipeline(name="two")
def two(text: str = "a"):
    train(data=make(text=text).outputs["data"])
"""


CUSTOM = """
from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

@dsl.component
def make(folder: str, data: Output[Dataset], model: Output[Model]):
    import os
    data.custom_path = folder + "/data"
    open(data.path, "w").write("a")
    model.set_path(folder + "/model")
    os.makedirs(model.path)
    open(model.path + "/weights", "w").write("b")

@dsl.component
def read(data: Input[Dataset], model: Input[Model]) -> str:
    return open(data.path).read() + open(model.path + "/weights").read()

@dsl.pipeline(name="custom")
def custom(folder: str) -> str:
    made = make(folder=folder).outputs
    return read(data=made["data"], model=made["model"]).output
"""


def compile_here(project: Project, name: str, source: str) -> None:
    """Make NAME.yaml in the project: to run a Python file starts Python to compile it."""
    (project / f"{name}.py").write_text(source)
    compile_pipeline(project / f"{name}.py", project.folder)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    project = Project(tmp_path_factory.mktemp("artifacts"), **graph_in_turn)
    compile_here(project, "two", PIPELINE)
    run(project, "two.yaml")
    run(project, "two.yaml", "-p", "text=b")
    return project


@pytest.fixture
def ran(two_runs: Project) -> Project:
    """A project with a run whose files are there, and one of another text."""
    two_runs("restore", "r1", "--yes")
    return two_runs


def files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


A = {"make/data": "first\na\n"}
MODEL = {"train/model/kind": "linear", "train/model/weights/0": "first\na\n"}


@pytest.mark.parametrize(
    ("what", "expected"),
    [("r1", A | MODEL), ("r1/make", A), ("r1/train", MODEL), ("r1/train:model", MODEL)],
)
def test_restore_all_artifacts(
    ran: Project, tmp_path: Path, what: str, expected: dict[str, str]
) -> None:
    made = ran / "pipeline-runs" / "r1"
    shutil.rmtree(made)
    ran.command("restore", what, "--dry-run", check=True)
    assert not made.exists()
    ran.command("restore", what, "--to", tmp_path / "there", check=True)
    assert files(tmp_path / "there") == expected
    told = answer(ran, "restore", what)
    assert {one["path"] for one in told} == {str(made / name) for name in expected}
    assert files(made) == expected
    assert states(run(ran, "two.yaml")).keys() == {"make", "train"}


def test_restore_one_artifact_to_a_path(ran: Project, tmp_path: Path) -> None:
    ran.command("restore", "r1/make:data", "--to", tmp_path / "one", check=True)
    assert (tmp_path / "one").read_text() == A["make/data"]


def test_restore_does_not_overwrite_changed_files(ran: Project) -> None:
    changed = ran / "pipeline-runs" / "r1" / "train" / "model" / "kind"
    changed.write_text("something of mine")
    assert ran.command("restore", "r1").returncode == 4
    assert changed.read_text() == "something of mine"
    ran.command("restore", "r1", "--yes", check=True)
    assert changed.read_text() == "linear"


def compared(project: Project, a: str, b: str, *, status: int) -> dict[str, Any]:
    ran = project.command("diff", a, b, "--json")
    assert ran.returncode == status, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_diff_of_artifacts(ran: Project) -> None:
    found = compared(ran, "r1/make:data", "r2/make:data", status=3)
    assert (found["verdict"], len(found["files"])) == ("different", 1)
    assert found["files"][0]["path"] == "data"
    assert found["files"][0]["lines"][-2:] == ["-a", "+b"]
    found = compared(ran, "r1/train:model", "r2/train:model", status=3)
    assert [(one["path"], one["kind"]) for one in found["files"]] == [("weights/0", "changed")]
    found = compared(ran, "r1/train:model", "r1/make:data", status=3)
    assert {one["kind"] for one in found["files"]} == {"missing", "extra"}
    found = compared(ran, "r1/train:model", "r1/train:model", status=0)
    assert (found["verdict"], found["files"]) == ("identical", [])
    said = ran.command("diff", "r1/make:data", "r2/make:data").stdout.decode()
    assert "    -a\n" in said
    assert "    +b\n" in said


def test_reproduce_an_artifact(ran: Project) -> None:
    found = answer(ran, "repeat", "r1/make:data")
    assert (found["of"], found["verdict"]) == (
        answer(ran, "pipeline", "show", "r1")["tasks"][0]["execution"],
        "equivalent",
    )


@pytest.mark.parametrize("what", ["r1/nobody", "r1/make:nothing", "r7", "r1/make/data"])
def test_missing_artifacts(ran: Project, what: str) -> None:
    refused = ran.command("restore", what, "--json")
    assert refused.returncode == 5
    assert json.loads(refused.stdout)["error"]["hint"].startswith("clew pipeline ")


def test_an_artifact_at_a_custom_path(project: Project, tmp_path: Path) -> None:
    compile_here(project, "custom", CUSTOM)
    made = run(project, "custom.yaml", "-p", f"folder={tmp_path}")
    assert made["outputs"] == {"Output": "ab"}
    (tmp_path / "data").unlink()
    assert files(project / "pipeline-runs/r1/make/model") == {"weights": "b"}
    assert project("cat", "r1/make:data").stdout == "a"
    assert made["tasks"][0]["artifacts"]["data"][0]["digest"]

"""A task is reused if nothing it depended on changed; otherwise the change is named."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.programs.compiling import HERE, run_script
from tests.local.test_cmd_pipeline import answer, run, states, tasks


@pytest.fixture(scope="session")
def reused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("reused") / "reused.yaml"
    run_script(HERE / "reused.py", file)
    return file


@pytest.fixture
def ready(project: Project, reused: Path) -> Project:
    """A project in which the pipeline has run once."""
    (project / "undeclared.txt").write_text("words")
    (project / "folder").mkdir()
    (project / "folder" / "one").touch()
    (project / "helping.py").write_text("WORD = 'help'\n")
    assert set(states(run(project, reused)).values()) == {"succeeded"}
    return project


def ran(project: Project, reused: Path, *words: str) -> dict[str, Any]:
    """What `collect` says, which must have run."""
    document = run(project, reused, *words)
    assert document["state"] == "succeeded"
    found: dict[str, Any] = tasks(document)["collect"]
    assert found["state"] == "succeeded"
    return found


def test_a_reused_task_names_its_source(ready: Project, reused: Path) -> None:
    document = run(ready, reused)
    assert set(states(document).values()) == {"reused"}
    found = tasks(document)
    first = tasks(answer(ready, "pipeline", "show", "r1"))
    for name in ("collect", "measure"):
        assert found[name]["reused_from"] == f"r1/{name}"
        assert "facts hold" in found[name]["why"]
        for same in ("outputs", "artifacts", "execution"):
            assert found[name][same] == first[name][same]
    assert document["outputs"] == {"Output": len("words folder/one none help 1")}
    assert ready.command("cat", "r2/collect:data").stdout == b"words folder/one none help 1"


def test_an_edited_import(ready: Project, reused: Path) -> None:
    (ready / "helping.py").write_text("WORD = 'HELP'\n")
    assert "helping.py changed" in ran(ready, reused)["why"]


def test_a_file_that_shadows_an_import(ready: Project, reused: Path) -> None:
    (ready / "helping").mkdir()
    (ready / "helping" / "__init__.py").write_text("WORD = 'shadow'\n")
    assert "helping" in ran(ready, reused)["why"]
    assert b" shadow " in ready.command("cat", "r2/collect:data").stdout


def test_a_file_that_shadows_the_standard_library(ready: Project, reused: Path) -> None:
    (ready / "glob.py").write_text("def glob(_):\n    return ['mine']\n")
    assert "glob" in ran(ready, reused)["why"]
    assert b" mine " in ready.command("cat", "r2/collect:data").stdout


def test_an_unused_file(ready: Project, reused: Path) -> None:
    (ready / "notes.txt").write_text("to be read by people")
    assert set(states(run(ready, reused)).values()) == {"reused"}


def test_a_listed_directory(ready: Project, reused: Path) -> None:
    (ready / "folder" / "two").touch()
    assert "the names in folder changed" in ran(ready, reused)["why"]


def test_an_undeclared_file(ready: Project, reused: Path) -> None:
    (ready / "undeclared.txt").write_text("Words")
    assert "undeclared.txt changed" in ran(ready, reused)["why"]
    (ready / "undeclared.txt").unlink()
    assert run(ready, reused, status=1)["state"] == "failed"


def test_a_variable(ready: Project, reused: Path) -> None:
    ready.environment["CHOSEN"] = "this"
    assert "its variable CHOSEN is new" in ran(ready, reused)["why"]
    ready.environment["TERM"] = "another"  # no task has it
    assert set(states(run(ready, reused)).values()) == {"reused"}
    del ready.environment["CHOSEN"]
    assert tasks(run(ready, reused))["collect"]["reused_from"] == "r1/collect"


def test_a_secret_variable(ready: Project, reused: Path) -> None:
    for secret, state in (("first", "succeeded"), ("first", "reused"), ("second", "succeeded")):
        ready.environment["MY_PASSWORD"] = secret
        assert tasks(run(ready, reused))["collect"]["state"] == state


@pytest.mark.parametrize("how", ["deleted", "changed"])
def test_a_deleted_artifact(ready: Project, reused: Path, how: str) -> None:
    made = Path(
        tasks(answer(ready, "pipeline", "show", "r1"))["collect"]["artifacts"]["data"][0]["uri"]
    )
    if how == "deleted":
        made.unlink()
    else:
        found = made.stat()
        made.write_text("lies")
        os.utime(made, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert "which it made" in ran(ready, reused)["why"]


def test_identical_outputs_keep_later_tasks_reused(ready: Project, reused: Path) -> None:
    """Who only reads what was made again is not run, unless the bytes are others."""
    (ready / "helping.py").write_text("WORD = 'help'  # as before\n")
    document = run(ready, reused)
    assert states(document) == {"collect": "succeeded", "measure": "reused"}


def test_a_parameter_is_named(ready: Project, reused: Path) -> None:
    why = ran(ready, reused, "-p", "count=2")["why"]
    assert why == "its parameter count changed from 1 to 2 since r1/collect"


def test_no_cache(ready: Project, reused: Path) -> None:
    assert set(states(run(ready, reused, "--no-cache")).values()) == {"succeeded"}


def test_a_changed_package_of_the_worker(ready: Project, reused: Path, tmp_path: Path) -> None:
    """What a worker read before it forked counts for every task."""
    (tmp_path / "site").mkdir()
    ready.environment["PYTHONPATH"] = str(tmp_path / "site")
    run(ready, reused)
    assert set(states(run(ready, reused)).values()) == {"reused"}
    (tmp_path / "site" / "sitecustomize.py").write_text("")
    assert f"{tmp_path / 'site'}" in ran(ready, reused)["why"]


WALKING = """
from kfp import dsl

@dsl.component
def walk(path: str) -> int:
    import os
    import tempfile
    from importlib.metadata import version

    version("kfp")
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "own"), "w").close()
        return len(os.listdir(folder)) + len(os.path.realpath(path))

@dsl.pipeline(name="walking")
def walking(path: str) -> int:
    return walk(path=path).output
"""


def test_parent_directories_and_created_directories(project: Project, tmp_path: Path) -> None:
    """Who resolves a path does not go by the times of the folders above, nor does what it made and
    removed itself matter."""
    (project / "walking.py").write_text(WALKING)
    deep = tmp_path / "home" / "deep" / "file"
    deep.parent.mkdir(parents=True)
    deep.touch()
    words = ("walking.py", "-p", f"path={deep}")
    assert run(project, *words)["state"] == "succeeded"
    for folder in (deep.parent.parent, project.folder):
        (folder / "another").touch()
    document = run(project, *words)
    assert states(document) == {"walk": "reused"}, tasks(document)["walk"]["why"]
    deep.parent.rename(deep.parent.with_name("moved"))
    deep.parent.symlink_to("moved")
    assert states(run(project, *words)) == {"walk": "succeeded"}


def test_equal_tasks_of_one_run_all_run(project: Project) -> None:
    (project / "equal.py").write_text(
        "from kfp import dsl\n"
        "@dsl.component\ndef draw(after: float = 0) -> float:\n"
        "    import random\n    return random.random() * 0\n"
        "@dsl.pipeline(name='equal')\ndef equal():\n"
        "    last = draw(after=0.0)\n"
        "    for _ in range(5):\n        last = draw(after=last.output)\n"
    )
    assert set(states(run(project, "equal.py")).values()) == {"succeeded"}
    assert set(states(run(project, "equal.py")).values()) == {"reused"}

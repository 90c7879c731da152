"""The Python interface, as a program uses it."""

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

import clew


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> clew.Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("CLEW_PROJECT", "CLEW_GRAPH", "CLEW_SERVER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "raw.txt").write_text("b\na\n")
    return clew.init()


def test_a_whole_session(project: clew.Project, tmp_path: Path) -> None:
    with project:
        made = project.exec(["sh", "-c", "sort raw.txt > sorted.txt"], name="sorting")
        assert (made.id, made.name, made.state, made.status) == ("e1", "sorting", "done", 0)
        assert isinstance(made.started, datetime)
        assert made.started.tzinfo is not None
        assert project.executions() == [made] == [project.execution("sorting")]
        assert "sort" in {process.command[0] for process in made.processes}
        assert str(tmp_path / "raw.txt") in {file.path for file in made.inputs}
        assert str(tmp_path / "sorted.txt") in {file.path for file in made.outputs}
        assert {file.category for file in made.files} >= {"data", "system"}

        lineage = project.lineage("sorted.txt")
        labels = {node.id: node.label for node in lineage.nodes}
        assert str(tmp_path / "raw.txt") in labels.values()
        assert all({edge.start, edge.end} <= labels.keys() for edge in lineage.edges)

        (version,) = project.versions("sorted.txt")
        assert project.read(version.id) == b"a\nb\n" == b"".join(project.chunks("e1:sorted.txt"))
        (tmp_path / "sorted.txt").unlink()
        assert project.restore(version.id).path == str(tmp_path / "sorted.txt")

        project.source("raw.txt", "https://example.org/raw.txt")
        assert [note.key for note in project.note("e1", verdict="good")] == ["verdict"]
        assert project.notes("e1") == project.note("e1")
        assert json.loads(bytes(project.export("e1")))  # type: ignore[arg-type]
        assert project.report("e1", "readme").startswith("## sorting")
        assert project.fsck().ok
        assert project.remove(["e1"]) == [made]
        assert project.executions() == []


def test_what_would_be_lost_is_not_overwritten(project: clew.Project, tmp_path: Path) -> None:
    project.exec(["cat", "raw.txt"])
    (tmp_path / "raw.txt").write_text("precious")
    assert project.restore("e1:raw.txt", dry_run=True).loses
    with pytest.raises(clew.ClewError, match="content is not stored"):
        project.restore("e1:raw.txt")
    assert (tmp_path / "raw.txt").read_text() == "precious"
    project.restore("e1:raw.txt", overwrite=True)
    assert (tmp_path / "raw.txt").read_text() == "b\na\n"


def test_records_are_values(project: clew.Project) -> None:
    first = project.exec(["true"])
    again = project.execution("e1")
    assert first == again
    assert hash(first) == hash(again)
    with pytest.raises(AttributeError):
        again.id = "e2"  # type: ignore[misc]
    assert "document" not in repr(again)
    assert again.as_json()["id"] == "e1"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda p: p.execution("e9"), "not-found"),
        (lambda p: p.exec("ls -l"), "usage"),
        (lambda p: p.exec([]), "usage"),
        (lambda p: p.lineage("raw.txt", direction="sideways"), "usage"),
        (lambda p: p.report("e1", "novel"), "not-found"),
        (lambda p: p.export("e1", format="novel"), "usage"),
        (lambda p: p.export("e1", format="ro-crate"), "usage"),
    ],
)
def test_mistakes_raise_errors(project: clew.Project, call: object, code: str) -> None:
    with pytest.raises(clew.ClewError) as caught:
        call(project)  # type: ignore[operator]
    assert caught.value.code == code


def test_a_project_is_found_by_path(project: clew.Project, tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert clew.open(below).uid == project.uid
    assert repr(clew.open(below)) == f"LocalProject({str(tmp_path)!r})"
    with pytest.raises(clew.ClewError) as caught:
        clew.open("/")
    assert caught.value.code == "no-project"


def test_the_public_names_are_typed(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "import clew\n"
        "reveal_type(clew.open().execution('e1').outputs[0].size)\n"
        "reveal_type(clew.open().lineage('x').edges[0].kind)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert 'Revealed type is "int | None"' in ran.stdout, ran.stdout + ran.stderr
    assert 'Revealed type is "str"' in ran.stdout


def test_asking_for_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = clew.no_such_name  # type: ignore[attr-defined]
    assert set(dir(clew)) == set(clew.__all__)

"""`clew remote`: named remotes, a default, and a pull that creates the project."""

from pathlib import Path

import pytest
from tests.driver import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made("exec", "--name", "first", "--", "sh", "-c", "echo 1 > made")
    made("exec", "--", "true")
    return made


def test_push_and_pull_by_name_and_by_default(project: Project, tmp_path: Path) -> None:
    code, message, _ = project.error("push", status=5)
    assert (code, message) == ("not-found", "no remote is given, and there is no default remote")
    project("remote", "add", "lab", "../lab")
    project("remote", "add", "other", f"file://{tmp_path}/other")
    listed = project.json("remote", "list")
    assert [(row["name"], row["default"]) for row in listed] == [("lab", True), ("other", False)]
    assert listed[0]["url"] == str(tmp_path / "lab")
    assert [e["id"] for e in project.json("push", "e2")["executions"]] == ["e2"]
    assert len(project.json("push")["executions"]) == 1
    assert len(project.json("push", "other", "first")["executions"]) == 1
    assert [e["id"] for e in project.json("push", "latest")["executions"]] == ["e2"]
    assert project.error("push", "r1", status=5)[1] == "no execution r1"
    assert len(project.json("pull", "--list")) == 2
    assert len(project.json("pull", "other", "--list")) == 1
    project("remote", "remove", "lab")
    assert project.json("remote", "list")[0]["default"]


def test_pull_creates_the_project_only_if_it_succeeds(project: Project, tmp_path: Path) -> None:
    project("push", str(tmp_path / "lab"))
    other = Project(tmp_path / "other", init=False)
    other("pull", str(tmp_path / "nothing"), status=5)
    assert not (other / ".clew").exists()
    assert len(other.json("pull", str(tmp_path / "lab"))["executions"]) == 2
    assert other.json("remote", "list") == [
        {"name": "origin", "url": str(tmp_path / "lab"), "default": True}
    ]
    assert other.json("pull")["executions"] == []


def test_bad_names_and_files(project: Project) -> None:
    assert project.error("remote", "add", "../x", "lab", status=2)[0] == "usage"
    project("remote", "add", "lab", "lab")
    assert project.error("remote", "add", "lab", "lab2", status=1)[0] == "exists"
    assert project.error("remote", "remove", "none", status=5)[0] == "not-found"
    project.write(".clew/remotes.json", "[1]")
    assert "remotes.json cannot be read" in project.error("push", status=1)[1]

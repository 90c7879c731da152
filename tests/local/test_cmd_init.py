"""`clew init`."""

import shutil
import subprocess
from pathlib import Path

from tests.driver import Project


def test_a_project_is_made_and_found_from_below(
    tmp_path: Path, graph_in_turn: dict[str, str]
) -> None:
    clew = Project(tmp_path, init=False, **graph_in_turn)
    made = clew.json("init")
    assert made == {"project": str(clew.folder), "uid": made["uid"], "created": True}
    hidden = clew.folder / ".clew"
    assert {path.name for path in hidden.iterdir()} == {
        ".gitignore", "config.toml", "store", "cache", "spool", "token", "reserve",
    }  # fmt: skip
    assert (hidden / "token").stat().st_mode & 0o777 == 0o600
    below = clew.folder / "a" / "b"
    below.mkdir(parents=True)
    assert clew.json("list", cwd=below) == []


def test_git_stages_nothing_of_a_project(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = Project(tmp_path, init=False, **graph_in_turn)
    clew.json("init")
    clew.write("mine", "to be committed")
    for words in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *words], cwd=clew.folder, check=True)
    staged = subprocess.check_output(["git", "ls-files"], cwd=clew.folder, text=True)
    assert staged.split() == ["mine"]


def test_init_keeps_an_existing_project(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = Project(tmp_path, init=False, **graph_in_turn)
    first = clew.json("init")
    again = clew.json("init")
    assert again == {**first, "created": False}
    assert "is already a project" in clew("init").stderr


def test_another_folder_may_be_named(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = Project(tmp_path, init=False, **graph_in_turn)
    ran = clew("init", "inner/deep")
    assert ran.stdout == ""
    assert (clew.folder / "inner/deep/.clew/config.toml").is_file()
    assert clew.json("list", cwd=clew.folder / "inner/deep") == []


def test_a_place_that_cannot_be_written(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = Project(tmp_path, init=False, **graph_in_turn)
    clew.write("occupied", "a file")
    code, message, _ = clew.error("init", "occupied/below", status=4)
    assert code == "not-allowed"
    assert "occupied/below" in message


def test_a_project_that_came_with_a_repository_is_not_trusted(tmp_path: Path) -> None:
    """It was made by another user: its executions get no variable of this one."""
    theirs = Project(tmp_path / "theirs", MY_TOKEN="of-the-author")
    theirs("exec", "--", "sh", "-c", "echo ${#MY_TOKEN} > out")
    theirs("remote", "add", "backup", str(tmp_path / "stolen"))
    mine = Project(tmp_path / "mine", init=False, MY_TOKEN="secret-of-the-victim")
    config = theirs.folder / ".clew/config.toml"
    config.write_text(config.read_text().replace("# credentials = []", "credentials = []"))
    forged = theirs.folder / ".clew/spool" / ("e" * 32)
    forged.mkdir()
    (forged / "note").write_text("{}")
    shutil.copytree(theirs.folder, mine.folder, dirs_exist_ok=True)
    assert "its executions count as made elsewhere" in " ".join(mine("init").stderr.split())
    assert "(made elsewhere)" in mine("list").stdout
    assert mine.error("repeat", "e1", status=2)[0] == "secrets-needed"
    assert mine.json("show", "e1")["made_elsewhere"] is True
    mine.write(".env", "API_KEY=secret-of-the-victim\n")
    mine("exec", "--", "cat", ".env")
    assert mine.error("cat", "e2:.env", status=5)[0] == "no-content"
    assert "the record of eeeeeeee" in mine("list").stderr, "its spool is not read"
    assert mine.error("push", status=4)[0] == "not-allowed"
    mine("push", "backup")  # not the name of a remote, but a directory
    assert (mine.folder / "backup").is_dir()
    assert not (tmp_path / "stolen").exists()
    assert mine.json("list")[::-1][1]["made_elsewhere"] is True, "one project, one rule"
    others = Project(tmp_path / "other").folder / ".clew/store"
    for link in ("store", "store/packs"):
        place = mine.folder / ".clew" / link
        place.rename(tmp_path / "aside")
        place.symlink_to(others)
        code, message, _ = mine.error("gc", "--yes", status=4)
        assert (code, f"{place} is a link" in message) == ("not-allowed", True)
        place.unlink()
        (tmp_path / "aside").rename(place)
    mine("init", "--trust")
    assert [found["made_elsewhere"] for found in mine.json("list")] == [False, False]
    mine("repeat", "e1", status=3)
    moved = mine.folder.rename(tmp_path / "moved")
    assert not mine.json("list", cwd=moved)[::-1][0]["made_elsewhere"], "it is known wherever it is"

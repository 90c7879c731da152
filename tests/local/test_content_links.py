"""Files moved, copied and saved outside Clew: their lineage goes on at the same bytes."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    """e1 makes got.csv, which is moved to data/raw.csv; e2 reads it there."""
    clew = Project(tmp_path_factory.mktemp("moved"), **graph_in_turn)
    clew.shell("seq 100 > got.csv")
    (clew / "data").mkdir()
    (clew / "got.csv").rename(clew / "data/raw.csv")
    clew.shell("wc -l data/raw.csv > model.txt")
    return clew


def same_content(lineage: dict[str, Any]) -> list[tuple[str, str]]:
    labels = {node["id"]: Path(node["label"]).name for node in lineage["nodes"]}
    return [
        (labels[edge["from"]], labels[edge["to"]])
        for edge in lineage["edges"]
        if edge["kind"] == "same_content"
    ]


def test_mv(clew: Project) -> None:
    text = clew("trace", "model.txt").stdout
    assert "├─ data/raw.csv  found by e2, same bytes as e1:got.csv\n│  └┄ got.csv\n" in (
        text.replace("   ├─ ", "├─ ").replace("   │  ", "│  ")
    )
    assert "seq 100  e1.p" in text
    assert same_content(clew.json("trace", "model.txt")) == [("got.csv", "raw.csv")]
    assert 'label="same bytes"' in clew("trace", "model.txt", "--dot").stdout
    assert '"kind": "same_content"' in clew("trace", "model.txt", "--html", "-o", "-").stdout


def test_down(clew: Project) -> None:
    lineage = clew.json("trace", "e1:got.csv", "--down")
    assert same_content(lineage) == [("got.csv", "raw.csv")]
    assert "model.txt" in {Path(node["label"]).name for node in lineage["nodes"]}


def test_a_copy_that_no_execution_read(clew: Project) -> None:
    shutil.copy(clew / "data/raw.csv", clew / "copy.csv")
    text = clew("trace", "copy.csv").stdout
    assert "same bytes as e1:got.csv or e2:data/raw.csv" in text
    assert "changed outside" not in text


def test_an_editor_that_keeps_the_old_file(clew: Project) -> None:
    clew.shell("seq 200 > notes.csv")
    (clew / "notes.csv").rename(clew / "notes.csv~")
    clew.write("notes.csv", "edited\n")
    clew.shell("cat notes.csv notes.csv~ > both.csv")
    text = clew("trace", "both.csv").stdout
    assert "notes.csv  changed outside" in text
    assert "notes.csv~  found by e4, same bytes as e3:notes.csv" in text


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_an_unpacked_archive(tmp_path: Path, kind: str) -> None:
    clew = Project(tmp_path)
    packed = clew / "packed"
    clew.write("packed/sub/raw.csv", "a,b\n" * 50)
    archive = Path(shutil.make_archive(str(clew / "data"), kind, packed)).name
    shutil.rmtree(packed)
    clew.shell(f"cp {archive} copy-{archive}")
    shutil.unpack_archive(clew / f"copy-{archive}", clew / "unpacked")
    clew.shell("wc -l unpacked/sub/raw.csv > lines.txt")
    text = clew("trace", "lines.txt").stdout
    name = f"sub/raw.csv in e1:copy-{archive} or "
    assert f"unpacked/sub/raw.csv  found by e2, same bytes as {name}" in text.replace(
        "./sub", "sub"
    )
    assert f"└┄ copy-{archive}\n" in text
    down = clew.json("trace", f"e1:copy-{archive}", "--down")
    assert same_content(down) == [(f"copy-{archive}", "raw.csv")]
    assert "lines.txt" in {Path(node["label"]).name for node in down["nodes"]}


def test_downloads_of_browsers_and_git_checkouts(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    os.setxattr(
        clew.write("got.csv", "a,b\n" * 50), "user.xdg.origin.url", b"https://example.org/a"
    )
    clew.write("tracked.csv", "c,d\n" * 50)
    clew.shell("cat tracked.csv > before.csv")  # it is committed only later
    for words in ("init -q", "add tracked.csv", "-c user.name=n -c user.email=e commit -qm first"):
        subprocess.run(["git", "-C", clew.folder, *words.split()], check=True)
    clew.shell("cat got.csv tracked.csv > both.csv")
    (clew / "got.csv").rename(clew / "moved.csv")
    clew.shell("cat moved.csv > copy.csv")
    text = clew("trace", "both.csv").stdout
    assert "got.csv  found by e2 (source: https://example.org/a)" in text
    assert "tracked.csv  found by e1 (source: git " in text
    assert (
        "└┄ got.csv  found by e2 (source: https://example.org/a)"
        in clew("trace", "copy.csv").stdout
    )

"""`clew tag`."""

from pathlib import Path

import pytest
from tests.driver import Project, workflow

from clew.prov.export.note_transfer import PortableNote, import_notes


def tags(clew: Project, name: str) -> list[str]:
    found: list[str] = clew.json("tag", name)["tags"]
    return found


def test_tags_are_added_removed_and_found(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = workflow(tmp_path, **graph_in_turn)
    assert clew("tag", "latest", "baseline", "größer").stdout == "baseline\ngrößer\n"
    assert clew.json("tag", "clean", "baseline") == {"execution": "clean", "tags": ["baseline"]}
    assert clew.json("tag", "e2", "--remove", "baseline")["tags"] == ["größer"]
    assert [found["id"] for found in clew.json("list", "tag:baseline")] == ["e1"]
    rows = [line.split("\t") for line in clew("list").stdout.splitlines()]
    assert [row[5] for row in rows[1:]] == ["größer", "baseline"]
    assert clew.json("note", "e1")["notes"] == [], "a tag is no note"
    clew("tag", "e2", "baseline", "baseline")
    assert tags(clew, "e2") == ["größer", "baseline"]
    assert clew.error("tag", "e1", "--remove", "none", status=5)[0] == "not-found"
    assert clew.error("tag", "e1", "--remove", status=2)[0] == "usage"
    for bad in ("two words", "", "a:b", "x" * 65, "\x1b[2J"):
        assert clew.error("tag", "e1", bad, status=2)[0] == "usage"


def test_tags_travel_and_so_does_their_removal(tmp_path: Path) -> None:
    clew, other = workflow(tmp_path / "a"), Project(tmp_path / "b")
    clew("tag", "e1", "kept", "dropped")
    clew("push", str(tmp_path / "remote"))
    other("pull", str(tmp_path / "remote"))
    assert tags(other, "clean") == ["kept", "dropped"]
    assert [found["name"] for found in other.json("list", "tag:dropped")] == ["clean"]
    assert Project(tmp_path / "c")("pull", str(tmp_path / "remote"), "latest").stderr.startswith(
        "e1  sh -c 'wc"
    )
    clew("tag", "e1", "--remove", "dropped")
    clew("push", str(tmp_path / "remote"))
    other("pull", str(tmp_path / "remote"))
    assert tags(other, "clean") == ["kept"]
    other("tag", "clean", "dropped")
    assert tags(other, "clean") == ["kept", "dropped"], "the later note counts"


def test_a_note_from_elsewhere_does_not_keep_a_tag_away(tmp_path: Path) -> None:
    """It claims that the tag is removed in the far future."""
    clew, other = workflow(tmp_path / "a"), Project(tmp_path / "b")
    with clew.opened() as project:
        uid, graph = project.execution("e1").uid, project.graph
        removed = PortableNote(2**62, "eve", "untag", "good", activity=uid)
        graph.connection.atomically(lambda: import_notes(graph, uid, [removed]))
    clew("push", str(tmp_path / "remote"))
    other("pull", str(tmp_path / "remote"))
    assert other.json("tag", "clean", "good")["tags"] == ["good"]
    assert other.json("tag", "clean", "--remove", "good")["tags"] == []


@pytest.mark.parametrize("words", [("clew", "tag", "e1", "b"), ("clew", "list", "tag:b")])
def test_completion(tmp_path: Path, words: tuple[str, ...]) -> None:
    clew = workflow(tmp_path)
    clew("tag", "e2", "baseline")
    asked = {"_CLEW_COMPLETE": "lines_complete", "COMP_WORDS": "\n".join(words)}
    shown = clew(env={**clew.environment, **asked}).stdout
    prefix = "tag:" if words[1] == "list" else ""
    assert shown == f"plain\t{prefix}baseline\t\n"

"""`clew note`."""

import pytest
from tests.driver import Project, workflow


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path_factory.mktemp("once"), **graph_in_turn)


@pytest.mark.parametrize("target", ["clean", "e1.p1", "e1:data/clean.csv", "model.txt"])
def test_notes_are_kept_in_order(clew: Project, target: str) -> None:
    clew("note", target, "verdict=good", "reviewer=Ann Ö")
    noted = clew.json("note", target, "verdict=better = best")
    assert noted["target"] == target
    assert [(note["key"], note["value"]) for note in noted["notes"]] == [
        ("verdict", "good"),
        ("reviewer", "Ann Ö"),
        ("verdict", "better = best"),
    ]
    assert clew("note", target).stdout.splitlines()[0] == "verdict=good"


def test_a_file_that_is_not_recorded(clew: Project) -> None:
    clew.write("new.csv", "x")
    clew("note", "new.csv", "licence=CC0")
    assert clew.json("note", "new.csv")["notes"][0]["value"] == "CC0"


def test_a_text(clew: Project) -> None:
    assert clew("note", "e2", "not so = good\x1b[2J").stdout == "not so = good\\e[2J\n"
    (noted,) = clew.json("note", "e2")["notes"]
    assert (noted["key"], noted["value"]) == ("note", "not so = good\x1b[2J")
    assert [found["id"] for found in clew.json("list", "SO = Good")] == ["e2"]


def test_what_is_wrong_with_a_note(clew: Project) -> None:
    assert "in quotes" in clew.error("note", "e1", "two", "words", status=2)[1]
    assert "clew tag" in clew.error("note", "e1", "tag=x", status=2)[2]
    assert clew.error("note", "e1", "=value", status=2)[0] == "usage"
    assert clew.error("note", "e9", "a=b", status=5)[0] == "not-found"

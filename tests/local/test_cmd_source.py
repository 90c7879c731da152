"""`clew source`."""

import pytest
from tests.driver import Project, workflow

URL = "https://example.org/raw.csv"


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path_factory.mktemp("once"), **graph_in_turn)


def test_trace_shows_the_source(clew: Project) -> None:
    assert clew.json("source", "data/raw.csv", URL) == {"path": "data/raw.csv", "source": URL}
    assert f"data/raw.csv  found by e1 (source: {URL})" in clew("trace", "model.txt").stdout
    sources = [
        node["source"] for node in clew.json("trace", "model.txt")["nodes"] if node.get("source")
    ]
    assert sources == [URL]


def test_a_source_can_be_noted_before_the_file_is_recorded(clew: Project) -> None:
    clew.write("other.csv", "x\n")
    clew("source", "other.csv", URL)
    clew.shell("wc -l other.csv > count")
    assert f"(source: {URL})" in clew("trace", "count").stdout


def test_a_source_applies_to_the_current_content_only(clew: Project) -> None:
    clew.write("mine.csv", "taken\n")
    clew("source", "mine.csv", URL)
    clew.write("mine.csv", "others\n")
    clew.shell("wc -l mine.csv > lines")
    assert URL not in clew("trace", "lines").stdout


def test_a_missing_file(clew: Project) -> None:
    assert clew.error("source", "nothing.csv", URL, status=5)[0] == "not-found"

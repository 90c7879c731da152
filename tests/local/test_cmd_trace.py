"""`clew trace`: across executions, up and down, and in every form."""

import json
from pathlib import Path

import pytest
from tests.driver import Project, workflow


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph: dict[str, str]) -> Project:
    return workflow(tmp_path_factory.mktemp("once"), **graph)


def test_up_to_the_sources(clew: Project) -> None:
    text = clew("trace", "model.txt").stdout
    assert text.startswith("model.txt (e2, 2 B, blake3:")
    depths = {line.split("─ ")[-1].split("  ")[0]: line.find("─ ") for line in text.splitlines()}
    chain = ["wc -l", "data/clean.csv", "grep -v ',$' data/raw.csv", "data/raw.csv"]
    places = [depths[step] for step in chain]
    assert places == sorted(places)
    assert "data/raw.csv  found by e1" in text
    assert clew("trace", "model.txt", "--up").stdout == text


def test_down_to_the_results(clew: Project) -> None:
    text = clew("trace", "data/raw.csv", "--down").stdout
    assert "model.txt" in text
    assert "data/clean.csv" in text
    assert clew("impact", "data/raw.csv").stdout == text
    for options in ([], ["--depth", "1"], ["--all"]):
        down = clew.json("trace", "data/raw.csv", "--down", *options)
        assert clew.json("impact", "data/raw.csv", *options) == down


def test_only_so_deep(clew: Project) -> None:
    text = clew("trace", "model.txt", "--depth", "1").stdout
    assert "data/clean.csv" in text
    assert "raw.csv" not in text


def test_json(clew: Project) -> None:
    lineage = clew.json("trace", "model.txt")
    assert lineage["direction"] == "up"
    nodes = {node["id"]: node for node in lineage["nodes"]}
    assert nodes[lineage["target"]]["path"] == str(clew.folder / "model.txt")
    assert {node["kind"] for node in nodes.values()} >= {"file", "process"}
    for edge in lineage["edges"]:
        assert {edge["from"], edge["to"]} <= nodes.keys()
    assert {edge["kind"] for edge in lineage["edges"]} >= {"used", "generated"}
    clew("trace", "model.txt", "--json", "-o", "lineage.json")
    assert json.loads((clew.folder / "lineage.json").read_text()) == lineage


def test_changed_outside(tmp_path: Path, graph: dict[str, str]) -> None:
    clew = workflow(tmp_path, **graph)
    clew.write("data/clean.csv", "by hand\n")
    ran = clew("trace", "data/clean.csv")
    assert "changed outside" in ran.stdout
    assert "clew restore --list data/clean.csv" in ran.stderr
    clew.shell("wc -l < data/clean.csv > model.txt")
    assert "data/clean.csv  changed outside" in clew("trace", "model.txt").stdout


def test_graphviz_text(clew: Project) -> None:
    text = clew("trace", "model.txt", "--dot").stdout
    assert text.startswith("digraph lineage {")
    assert text.count(" -> ") >= 4


def test_a_page(clew: Project) -> None:
    printed = clew("trace", "model.txt", "--html").stdout
    assert printed.startswith("<!doctype html>")
    ran = clew("trace", "model.txt", "--html", "-o", "model.html")
    assert ran.stdout == ""
    assert (clew.folder / "model.html").read_text().strip() == printed.strip()


def test_files_of_packages_are_counted_or_named(clew: Project) -> None:
    assert "of installed packages (--all)" in clew("trace", "model.txt").stdout
    assert "libc.so.6" not in clew("trace", "model.txt").stdout
    assert "libc.so.6" in clew("trace", "model.txt", "--all").stdout
    nodes = {node["label"]: node for node in clew.json("trace", "model.txt", "--all")["nodes"]}
    (libc,) = [node for label, node in nodes.items() if label.endswith("/libc.so.6")]
    assert (libc["class"], libc["package"]["name"]) == ("system", "libc6")
    own = nodes[str(clew.folder / "data/raw.csv")]
    assert (own["class"], own["package"]) == ("data", None)


@pytest.mark.parametrize("target", ["e2", "e2.p1", "e2:model.txt", "clean:data/clean.csv"])
def test_whatever_has_an_id_can_be_traced(clew: Project, target: str) -> None:
    assert "data/raw.csv" in clew("trace", target).stdout


def test_an_unknown_target(clew: Project) -> None:
    clew.write("stranger.txt", "x")
    assert clew.error("trace", "stranger.txt", status=5)[0] == "not-found"
    for name in ("not-there", "not/there"):
        said = f"no execution and no file is called {name}"
        assert clew.error("trace", name, status=5) == ("not-found", said, "clew list")
    for words in (("--depth", "0"), ("--up", "--down"), ("--dot", "--html")):
        assert clew.error("trace", "model.txt", *words, status=2)[0] == "usage"


def test_an_output_that_cannot_be_written(clew: Project) -> None:
    code, message, _ = clew.error("trace", "model.txt", "-o", "no/such/folder", status=4)
    assert code == "not-allowed"
    assert "no/such/folder" in message


def test_names_of_any_bytes(clew: Project) -> None:
    odd = "naïve \x1b[31m\t."
    (clew.folder / odd).write_text("x")
    with open(bytes(clew.folder) + b"/\xff\xfe", "w") as file:
        file.write("y")
    clew.shell("cat ./n* > all; cat $(printf '\\377\\376') >> all")
    text = clew("trace", "all").stdout
    assert "naïve \\e[31m\\t." in text
    assert "\x1b" not in text
    odd_ones = [node for node in clew.json("trace", "all")["nodes"] if "path_b64" in node]
    assert len(odd_ones) == 1

"""RO-Crates, read back by the `rocrate` package."""

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.unit.prov.execution_builder import ExecutionBuilder, digest

from clew.errors import Damaged, NoContent
from clew.prov.export.ro_crate import write_crate
from clew.prov.graph import Graph

TEXTS = {digest(text): text for text in ("RAW", "SCRIPT", "ODD", "OUT", "hello")}


def copy(wanted: str, to: bytes) -> None:
    if wanted not in TEXTS:
        raise NoContent("not stored")
    Path(os.fsdecode(to)).write_text(TEXTS[wanted])


def read(directory: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own deprecations are not ours
        from rocrate.rocrate import ROCrate

        return ROCrate(directory)


def ids(entity: Any, field: str) -> set[str]:
    found = entity.get(field)
    return {one.id for one in (found if isinstance(found, list) else [found])}


@pytest.fixture
def told(graph: Graph) -> Graph:
    builder = ExecutionBuilder(
        "a", agent="ann lee", command=("python", "train.py"), name="training"
    )
    p = builder.process("python", "train.py")
    builder.read(p, "/w/train.py", "SCRIPT")
    builder.read(p, "/w/data set/raw.csv", "RAW")
    builder.read(p, b"/w/\xff%41", "ODD")
    builder.read(p, "/w/lost", "LOST")
    builder.read(p, "/w/excluded", "EXCLUDED", stored=False)
    builder.read(p, "/opt/numpy.py", "N", package="pkg:pypi/numpy@1.26.4")
    builder.write(p, "/w/tmp", "T")
    builder.delete(p, "/w/tmp")
    builder.write(p, "/w/out", "OUT")
    builder.write(p, f"stream://{builder.uid}/stdout", "hello")
    graph.fold(builder.end(activity=p).end().events)
    return graph


def test_it_reads_back(told: Graph, tmp_path: Path) -> None:
    directory = tmp_path / "crate"
    write_crate(told, "training", directory, alive=lambda _: False, copy=copy)
    crate = read(directory)
    assert crate.root_dataset["conformsTo"].id == "https://w3id.org/ro/wfrun/process/0.5"
    action = crate.dereference("#" + "a" * 32)
    assert action.type == "CreateAction"
    assert action["agent"]["name"] == "ann lee"
    assert ids(action, "result") == {"outputs/w/out", "outputs/stdout"}
    assert ids(action, "object") == {
        "inputs/w/train.py",
        "inputs/w/data%20set/raw.csv",
        "inputs/w/%25FF%252541",
        "#inputs/w/lost",
        "#inputs/w/excluded",
    }
    assert action["instrument"]["softwareRequirements"][0]["name"] == "numpy"
    assert ids(crate.root_dataset, "mentions") == {"#" + "a" * 32, "#aaaaaaaa-1-0-0"}
    assert ids(crate.dereference("#aaaaaaaa-1-0-0"), "result") == ids(action, "result")


def test_its_files_are_there(told: Graph, tmp_path: Path) -> None:
    directory = tmp_path / "crate"
    write_crate(told, "e1", directory, alive=lambda _: False, copy=copy)
    held = {
        str(file.relative_to(directory)): file.read_text()
        for file in directory.rglob("*")
        if file.is_file() and file.name != "ro-crate-metadata.json"
    }
    assert held == {
        "inputs/w/train.py": "SCRIPT",
        "inputs/w/data set/raw.csv": "RAW",
        "inputs/w/%FF%2541": "ODD",
        "outputs/w/out": "OUT",
        "outputs/stdout": "hello",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read(directory).write(tmp_path / "again")
    assert (tmp_path / "again" / "inputs/w/%FF%2541").read_text() == "ODD"


def test_a_moved_file_is_based_on_the_earlier_version(graph: Graph, tmp_path: Path) -> None:
    first, second = ExecutionBuilder("a"), ExecutionBuilder("b", at=10_000)
    first.write(first.process("make"), "/w/got", "X" * 100)
    second.read(second.process("use"), "/w/raw", "X" * 100)
    for builder in (first, second):
        graph.fold(builder.end().events)
    write_crate(graph, "e2", tmp_path, alive=lambda _: False)
    based_on = read(tmp_path).dereference("#inputs/w/raw")["isBasedOn"]
    assert based_on["name"] == "e1:/w/got@1"
    assert "inferred, not observed" in based_on["description"]


def test_without_bytes_it_only_describes(told: Graph, tmp_path: Path) -> None:
    write_crate(told, "e1", tmp_path / "crate", alive=lambda _: False)
    assert [file.name for file in (tmp_path / "crate").iterdir()] == ["ro-crate-metadata.json"]
    read(tmp_path / "crate")


def test_a_failed_execution_is_marked_as_failed(graph: Graph, tmp_path: Path) -> None:
    graph.fold(ExecutionBuilder("a").end(3).events)
    write_crate(graph, "e1", tmp_path / "crate", alive=lambda _: False)
    action = read(tmp_path / "crate").dereference("#" + "a" * 32)
    assert action.properties()["actionStatus"] == {"@id": "http://schema.org/FailedActionStatus"}
    assert "3" in action["error"]


@pytest.mark.parametrize("path", ["/../../outside", "/w/../../../outside", "/w/x/.."])
def test_no_file_is_written_outside_the_crate(graph: Graph, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").write_text("mine")
    builder = ExecutionBuilder("a")
    p = builder.process("sh")
    builder.read(p, path, "RAW")
    graph.fold(builder.end(activity=p).end().events)
    with pytest.raises(Damaged, match="not a valid relative path"):
        write_crate(graph, "e1", tmp_path / "crate", alive=lambda _: False, copy=copy)
    assert (tmp_path / "outside").read_text() == "mine"

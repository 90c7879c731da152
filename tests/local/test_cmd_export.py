"""`clew export`: other programs read it back."""

import pytest
from tests.driver import Project, workflow


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path_factory.mktemp("once"), **graph_in_turn)


def test_prov_json_is_read_back(clew: Project) -> None:
    from prov.model import ProvActivity, ProvDocument, ProvEntity

    text = clew("export", "e1", "--format", "prov-json").stdout
    document = ProvDocument.deserialize(content=text, format="json")
    records = list(document.flattened().get_records())
    assert any(isinstance(record, ProvActivity) for record in records)
    assert any(isinstance(record, ProvEntity) for record in records)
    clew("export", "clean", "-o", "out.json")
    assert ProvDocument.deserialize(source=str(clew.folder / "out.json"), format="json") == document


def test_prov_n(clew: Project) -> None:
    text = clew("export", "e1", "--format", "prov-n").stdout
    assert text.startswith("document")
    assert "wasGeneratedBy(" in text


def test_an_ro_crate_is_read_back(clew: Project) -> None:
    from rocrate.rocrate import ROCrate

    told = clew.json("export", "e1", "--format", "ro-crate", "-o", "crate")
    assert told["format"] == "ro-crate"
    crate = ROCrate(clew.folder / "crate")
    assert any("clean.csv" in str(entity.id) for entity in crate.data_entities)


def test_what_cannot_be_exported(clew: Project) -> None:
    assert clew.error("export", "e9", "-o", "x", status=5)[0] == "not-found"
    assert clew("export", "e1", "--format", "turtle", status=2).stderr.startswith("error: ")
    assert clew("export", "e1", "--format", "ro-crate", status=2).stderr.startswith("error: ")
    clew.write("taken/file", "x")
    assert clew("export", "e1", "--format", "ro-crate", "-o", "taken", status=4)
    assert (clew.folder / "taken/file").read_text() == "x"

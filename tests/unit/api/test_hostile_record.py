"""A record that somebody else made writes nothing outside the folder its files are laid out in."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.unit.prov.execution_builder import ExecutionBuilder

import clew
from clew.api.local import repeat
from clew.api.local.project import LocalProject
from clew.errors import Damaged
from clew.store import Store


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalProject]:
    (tmp_path / "victim").write_text("mine")
    monkeypatch.setenv("CLEW_PROJECT", "")
    with clew.init(tmp_path / "project") as made:
        with Store(made.directory.store) as store:
            store.put_all([b"EVIL", str(tmp_path).encode()])
        yield made


def hostile(project: LocalProject, *writes: tuple[str, str, int]) -> str:
    """The uid of an execution that left files of these paths, texts and modes."""
    builder = ExecutionBuilder("a")
    p = builder.process("sh")
    for path, text, mode in writes:
        builder.write(p, path, text)
        builder.events[-1] = msgspec.structs.replace(builder.events[-1], mode=mode)
    project.graph.fold(builder.end(activity=p).end().events)
    return builder.uid


@pytest.mark.parametrize("path", ["/w/../../victim", "/../../victim", "/w/.."])
def test_what_was_left_is_laid_out_inside(project: LocalProject, tmp_path: Path, path: str) -> None:
    uid = hostile(project, (path, "EVIL", 0o100644))
    with pytest.raises(Damaged, match="not a valid relative path"):
        repeat.write_outputs(project, uid, tmp_path / "kept")
    assert (tmp_path / "victim").read_text() == "mine"


def test_no_file_is_written_through_a_link_of_the_record(
    project: LocalProject, tmp_path: Path
) -> None:
    uid = hostile(project, ("/w/a", str(tmp_path), 0o120777), ("/w/a/victim", "EVIL", 0o100644))
    with pytest.raises(Damaged, match="is not a directory"):
        repeat.write_outputs(project, uid, tmp_path / "kept")
    assert (tmp_path / "victim").read_text() == "mine"


def test_what_was_left_gains_no_privileges(project: LocalProject, tmp_path: Path) -> None:
    uid = hostile(project, ("/w/su", "EVIL", 0o104755))
    repeat.write_outputs(project, uid, tmp_path / "kept")
    assert (tmp_path / "kept/su").stat().st_mode & 0o7777 == 0o755

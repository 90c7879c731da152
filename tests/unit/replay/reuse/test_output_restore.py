"""What a subtree left is put into a sandbox, and never through a link that leads out of it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.prov.execution_builder import digest

from clew.prov.queries.execution_record import Version
from clew.replay.reuse.output_restore import can_restore, keep_times, restore_outputs
from clew.replay.reuse.subtree import Output, Subtree


def read(_: str) -> Iterator[bytes]:
    yield b"evil"


def subtree(**outputs: str) -> Subtree:
    """One that left these paths, each of a kind."""
    none = cast("Any", None)
    content = cast("Version", type("Content", (), {"digest": digest("evil"), "mtime": 1}))
    found = {
        b"/" + os.fsencode(path.replace("__", "/")): Output(
            kind=kind, version=content, mode=0o755, mtime=1, in_place=False
        )
        for path, kind in outputs.items()
    }
    return Subtree(
        index=none, root=none, members=frozenset(), started=0, ended=0, status=0, dependencies=[],
        changes=[], outputs=found, handed=[], printed={},
    )  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sandbox with links that lead out of it."""
    made = tmp_path / "root"
    (made / "d").mkdir(parents=True)
    (tmp_path / "outside" / "in").mkdir(parents=True)
    (tmp_path / "outside" / "victim").write_text("mine")
    (made / "out").symlink_to(tmp_path / "outside")
    (made / "up").symlink_to("..")
    return made


def test_what_was_left_is_put_there(root: Path) -> None:
    left = subtree(d__x="file", n="directory", n__y="file", d__l="link")
    assert can_restore(left, bytes(root))
    _, after = restore_outputs(left, bytes(root), read, {}, keep_times)
    assert (root / "d/x").read_bytes() == (root / "n/y").read_bytes() == b"evil"
    assert os.readlink(root / "d/l") == "evil"
    assert set(after) == {b"/d/x", b"/n/y", b"/d/l"}
    restore_outputs(subtree(d__x="gone", d__l="gone"), bytes(root), read, {}, keep_times)
    assert list((root / "d").iterdir()) == []


@pytest.mark.parametrize(
    "outputs",
    [
        {"out__victim": "file"},
        {"out__in__victim": "file"},
        {"up__outside__victim": "file"},
        {"out__new": "directory"},
        {"out__new": "link"},
        {"out__victim": "gone"},
        {"d__..__..__outside__victim": "file"},
    ],
)
def test_nothing_is_put_outside(root: Path, tmp_path: Path, outputs: dict[str, str]) -> None:
    left = subtree(**outputs)
    assert "gone" in outputs.values() or not can_restore(left, bytes(root))
    with pytest.raises(Exception):  # noqa: B017 (whatever says that it cannot be done)
        restore_outputs(left, bytes(root), read, {}, keep_times)
    outside = tmp_path / "outside"
    assert sorted(path.name for path in outside.rglob("*")) == ["in", "victim"]
    assert (outside / "victim").read_text() == "mine"

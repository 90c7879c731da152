"""What a subtree depended on is the same again, or the difference is named."""

import os
import stat
from pathlib import Path

import pytest
from tests.unit.replay.record_builder import CONTENTS
from tests.unit.replay.reuse.recorded_step import Step

from clew.confined_files import Confined
from clew.replay.reuse.input_check import InputCheck
from clew.replay.reuse.subtree import Subtree
from clew.replay.sandbox.sandbox_reader import SandboxFiles


class Place:
    """A world that the subtree is to fit into: real files below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "w").mkdir()

    def write(self, path: str, content: bytes, mtime: int = 0, mode: int = 0o644) -> None:
        place = self.root / path.lstrip("/")
        place.write_bytes(content)
        place.chmod(mode)
        os.utime(place, ns=(mtime, mtime))

    def find_difference(self, found: Subtree, names: set[bytes] | None = None) -> str | None:
        world = SandboxFiles(Confined(os.open(self.root, os.O_PATH)), {})

        def listed(answer: str) -> list[bytes]:
            return CONTENTS[answer].split(b"\0")

        return InputCheck(found, world, listed, lambda _, __: names or set()).find_difference()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_bytes(place: Place) -> None:
    run = Step()
    run.reads(run.step, "/w/in", b"1")
    found = run.subtree()
    assert place.find_difference(found) == "in is gone"
    place.write("/w/in", b"1")
    assert place.find_difference(found) is None
    place.write("/w/in", b"2")
    assert place.find_difference(found) == "in changed"
    place.write("/w/in", b"1", mode=0o600)
    assert place.find_difference(found) == "in changed"
    place.write("/w/in", b"1", mtime=5)
    assert place.find_difference(found) == "in changed"  # it was found: its time tells


def test_bytes_that_the_run_makes_have_new_times(place: Place) -> None:
    run = Step(made=("/w/made",))
    run.reads(run.step, "/w/made")
    found = run.subtree()
    place.write("/w/made", b"1", mtime=123)
    assert place.find_difference(found) is None
    place.write("/w/made", b"2", mtime=123)
    assert place.find_difference(found) == "made changed"


def test_looks(place: Place) -> None:
    run = Step()
    run.looks(run.step, "absent", "/w/flag", "ENOENT")
    run.looks(run.step, "present", "/w/there", "")
    run.looks(run.step, "link", "/w/link", "target")
    found = run.subtree()
    assert place.find_difference(found) == "there is gone"
    place.write("/w/there", b"")
    assert place.find_difference(found) == "the link link points elsewhere"
    (place.root / "w/link").symlink_to("target")
    assert place.find_difference(found) is None
    place.write("/w/flag", b"")
    assert place.find_difference(found) == "flag exists now"


def test_permissions(place: Place) -> None:
    run = Step()
    run.looks(run.step, "present", "/w/tool", "x")
    run.looks(run.step, "absent", "/w/text", "EACCES x")
    found = run.subtree()
    place.write("/w/tool", b"", mode=0o755)
    place.write("/w/text", b"", mode=0o644)
    assert place.find_difference(found) is None
    place.write("/w/text", b"", mode=0o755)
    assert place.find_difference(found) == "text exists now"
    place.write("/w/text", b"", mode=0o644)
    place.write("/w/tool", b"", mode=0o644)
    assert place.find_difference(found) == "the mode of tool changed"


def test_the_order_of_times(place: Place) -> None:
    """Files that the run makes: only which is newer counts, and only to who asks."""
    run = Step(made=("/w/a", "/w/b"))
    for name, version in zip("ab", run.made, strict=True):
        run.looks(run.step, "times", f"/w/{name}", f"100644 1 {run.versions[version].mtime}")
    found = run.subtree()
    place.write("/w/a", b"1", mtime=100)
    place.write("/w/b", b"1", mtime=200)
    assert place.find_difference(found) is None
    place.write("/w/b", b"1", mtime=50)
    assert place.find_difference(found) == "files were created in another order"
    place.write("/w/b", b"1", mtime=100)
    assert place.find_difference(found) == "files were created in another order"
    place.write("/w/b", b"2", mtime=200)
    assert place.find_difference(found) == "b changed"


def test_names(place: Place) -> None:
    run = Step()
    run.lists(run.step, "/w", "a", "b")
    found = run.subtree()
    place.write("/w/a", b"")
    assert place.find_difference(found) == "the names in /w changed: b is gone"
    place.write("/w/b", b"")
    assert place.find_difference(found) is None
    place.write("/w/c", b"")
    assert place.find_difference(found) == "the names in /w changed: c is new"


def test_names_that_it_made_itself(place: Place) -> None:
    run = Step()
    run.writes(run.step, "/w/mine", b"1")
    run.removes(run.step, run.version("/w/old", None))
    run.lists(run.step, "/w", "a", "mine")
    run.looks(run.step, "times", "/w/mine", "100644 1 5")
    found = run.subtree()
    place.write("/w/a", b"")
    assert place.find_difference(found) == "old is gone"
    place.write("/w/old", b"")
    assert place.find_difference(found) is None


def test_a_directory_by_its_names(place: Place) -> None:
    run = Step()
    run.looks(run.step, "times", "/w", "40755 4096 5")
    found = run.subtree()
    place.write("/w/a", b"")
    (place.root / "w").chmod(0o755)
    assert place.find_difference(found, {b"a"}) is None
    assert place.find_difference(found, {b"a", b"b"}) == "the names in /w changed: b is gone"


def test_links_resolve_within_the_sandbox(place: Place) -> None:
    run = Step()
    run.looks(run.step, "present", "/w/there/file", "")
    found = run.subtree()
    (place.root / "real").mkdir()
    place.write("/real/file", b"")
    (place.root / "w/there").symlink_to("/real")  # from the world's root, not from ours
    assert place.find_difference(found) is None
    (place.root / "real/file").unlink()
    assert place.find_difference(found) == "there/file is gone"


def test_a_directory_it_removed_was_empty(place: Place) -> None:
    run = Step()
    run.looks(run.step, "removed", "/w/d", f"{stat.S_IFDIR | 0o755:o} 1")
    found = run.subtree()
    assert place.find_difference(found) == "the names in d changed"
    (place.root / "w/d").mkdir()
    assert place.find_difference(found) is None
    place.write("/w/d/new", b"")
    assert place.find_difference(found) == "the names in d changed: new is new"

"""Which subtrees of processes can be reused, and what they depend on."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replay.record_builder import CONTENTS, RecordBuilder

from clew.confined_files import Confined
from clew.prov.queries.execution_record import Activity, ExecutionRecord, Gap
from clew.replay.reuse.dependency_index import DependencyIndex
from clew.replay.reuse.input_check import InputCheck
from clew.replay.reuse.start_match import ProgramStart, find_start_difference
from clew.replay.reuse.subtree import NotReusable, Subtree
from clew.replay.reuse.subtree_analysis import analyze_subtree
from clew.replay.sandbox.sandbox_reader import SandboxFiles

NULL = [[0, 1, "/dev/null"], [1, 2, "/dev/null"], [2, 2, "/dev/null"]]


class Step(RecordBuilder):
    """A driver, and one step whose subtree is asked about."""

    def __init__(
        self, held: list[list[Any]] = NULL, made: tuple[str, ...] = (), **variables: str
    ) -> None:
        super().__init__("sh", "run.sh", facets={"machine": "machine"}, variables={"LANG": "C"})
        self.driver = self.process("sh", "run.sh")
        before = self.process("first")
        self.made = [self.writes(before, path, b"1") for path in made]
        self.ends(before)
        self.step = self.process("step", parent=self.driver, **variables)
        self.begins(self.step, held)

    def begins(self, process: int, held: list[list[Any]] = NULL, **more: Any) -> None:
        begun = {"at": self.now(), "held": held, **more}
        self.activities[process] = self.activities[process]._replace(facets={"begun": begun})

    def subtree(self) -> Subtree:
        self.ends(self.step)
        record = self.record()
        return analyze_subtree(DependencyIndex(record), record.activities[self.step])

    def why(self) -> str:
        with pytest.raises(NotReusable) as told:
            self.subtree()
        return str(told.value)


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


# -- which subtrees stand for themselves


def test_a_plain_step_is_a_unit() -> None:
    run = Step()
    child = run.process("child", parent=run.step)
    run.reads(child, "/w/in", b"1")
    run.writes(child, "/w/out", b"2")
    run.ends(child)
    found = run.subtree()
    assert found.members == {run.step, child}
    assert [dependency.path for dependency in found.dependencies] == [b"/w/in"]
    assert {path: left.kind for path, left in found.outputs.items()} == {b"/w/out": "file"}


def test_what_becomes_another_program_is_one_unit() -> None:
    run = Step()
    after = run.becomes(run.step, "other")
    run.writes(after, "/w/out", b"2")
    run.activities[after] = run.activities[after]._replace(ended=run.now(), status=7)
    record = run.record()
    found = analyze_subtree(DependencyIndex(record), record.activities[run.step])
    assert (found.members, found.status) == ({run.step, after}, 7)


@pytest.mark.parametrize(
    ("via", "why"),
    [
        ("pipe", "it is one end of a pipe"),
        ("socket", "it talks through a socket"),
        ("signal", "a signal passes between it and others"),
    ],
)
@pytest.mark.parametrize("inward", [True, False])
def test_who_talks_with_others_is_none(via: str, why: str, inward: bool) -> None:
    run = Step()
    pair = (run.driver, run.step) if inward else (run.step, run.driver)
    run.passes(*pair, via)
    assert run.why() == why


def test_who_talks_within_is_one() -> None:
    run = Step()
    one, other = (run.process(name, parent=run.step) for name in ("one", "other"))
    run.passes(one, other)
    run.ends(one)
    run.ends(other)
    assert run.subtree().members == {run.step, one, other}


def test_a_surviving_child() -> None:
    run = Step()
    run.process("daemon", parent=run.step)
    assert run.why() == "a process of it went on when it had ended"


def test_a_signal_that_ended_it() -> None:
    run = Step()
    run.activities[run.step] = run.activities[run.step]._replace(
        ended=run.now(), status=None, signal=9
    )
    record = run.record()
    with pytest.raises(NotReusable, match="a signal ended it"):
        analyze_subtree(DependencyIndex(record), record.activities[run.step])


def test_gaps() -> None:
    run = Step()
    run.gaps.append(Gap(run.step, "shared-memory", "unseen", None))
    assert run.why() == "not all of it was seen (shared-memory)"
    run = Step()
    run.reads(run.step, "/w/in", b"1")
    run.gaps.append(Gap(run.top, "content", "changed", "file://machine/w/in"))
    assert run.why() == "the bytes of /w/in were not kept"


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ([[0, 1, "pipe:0"]], "it reads a pipe"),
        ([[1, 2, "pipe:0"]], "it writes to a pipe"),
        ([[3, 3, "socket:0"]], "it has a socket from its parent"),
        ([[1, 2, "stdout"]], "others printed while it did"),
    ],
)
def test_what_it_is_started_with(held: list[list[Any]], why: str) -> None:
    assert Step(held).why() == why


def test_a_pipe_that_counts_jobs_is_no_matter() -> None:
    assert Step([[3, 1, "pipe:0"], [4, 2, "pipe:0"]]).subtree().dependencies == []


def test_the_network() -> None:
    run = Step()
    key = run.version("/peer", None)
    run.versions[key] = run.versions[key]._replace(locator="tcp://192.0.2.1:80")
    run.used.append(run.used[0]._replace(version=key) if run.used else _edge(run, key))
    assert run.why() == "it uses the network"


def _edge(run: RecordBuilder, version: int) -> Any:
    from clew.prov.queries.execution_record import Edge

    assert isinstance(run, Step)
    return Edge(run.step, version, run.now(), "connect")


def test_what_others_wrote_meanwhile() -> None:
    run = Step()
    other = run.process("other", parent=run.driver)
    run.writes(other, "/w/in", b"1")
    run.ends(other)
    run.reads(run.step, "/w/in")
    assert run.why() == "/w/in was written while it ran"


def test_what_others_wrote_as_well() -> None:
    run = Step(made=("/w/out",))
    run.also_writes(run.step, run.made[0])
    assert run.why() == "others wrote to /w/out as well"


def test_what_was_not_kept() -> None:
    run = Step()
    run.writes(run.step, "/w/out", None)
    assert run.why() == "what it wrote to /w/out was not kept"


def test_what_it_removed_again_need_not_be_kept() -> None:
    run = Step()
    run.removes(run.step, run.writes(run.step, "/w/temp", None))
    assert run.subtree().outputs[b"/w/temp"].kind == "gone"


def test_what_was_done_before_the_program_began_is_not_its_own() -> None:
    run = Step()
    early = run.process("late", parent=run.driver)
    run.looks(early, "absent", "/w/shell", "ENOENT")
    run.begins(early)
    run.looks(early, "absent", "/w/program", "ENOENT")
    run.ends(early)
    record = run.record()
    found = analyze_subtree(DependencyIndex(record), record.activities[early])
    assert [dependency.path for dependency in found.dependencies] == [b"/w/program"]


def test_a_file_that_was_handed_over() -> None:
    run = Step([[1, 2, "/w/log", 0, 0, 0]])
    run.writes(run.step, "/w/log", b"12")
    (handed,) = run.subtree().handed
    assert (handed.fd, handed.path, handed.since) == (1, b"/w/log", 0)
    run = Step([[1, 2, "/w/log", 0, 1, 5]])
    run.writes(run.step, "/w/log", b"1234567")
    assert run.subtree().handed[0].since == 5
    run = Step([[1, 2, "/w/log", 3, 0, 3]])
    run.writes(run.step, "/w/log", b"1234567")
    assert run.why() == "it goes on in /w/log, which others began"


def test_its_part_of_the_output() -> None:
    held = [[1, 2, "stdout"]]
    run = Step(held)
    run.prints(b"before and mine", run.driver, run.step)
    run.begins(run.step, held, output={"stdout": [11, 15]})
    assert run.subtree().printed == {"stdout": (11, 15)}
    run = Step(held)
    run.prints(b"short", run.step)
    run.begins(run.step, held, output={"stdout": [0, 9]})
    assert run.why() == "what it printed was not kept"
    run = Step(held)
    run.facets["masked"] = ["stdout"]
    run.prints(b"***", run.step)
    run.begins(run.step, held, output={"stdout": [0, 3]})
    assert run.why() == "a secret was masked in what it printed"


# -- how it is started


def start(record: ExecutionRecord, process: Activity, **changed: Any) -> ProgramStart:
    return ProgramStart(
        **{
            "program": process.exe or "",
            "command": tuple(process.command),
            "cwd": process.cwd or "",
            "environment": {"LANG": "C"},
            "held": NULL,
            "standing": None,
            "reference": record,
            **changed,
        }
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, None),
        ({"environment": {"LANG": "de"}}, "its variable LANG changed"),
        ({"environment": {}}, "its variable LANG is not set any more"),
        ({"environment": {"LANG": "C", "X": "1"}}, "its variable X is new"),
        ({"held": [*NULL, [3, 1, "/w/in", 0, 0, 1]]}, "its input or output goes elsewhere"),
        ({"standing": "umask 0077"}, "its limits, signals or permissions changed"),
        ({"others": 1}, "it waits, and others run meanwhile"),
    ],
)
def test_how_it_is_started(changed: dict[str, Any], why: str | None) -> None:
    found = Step().subtree()
    assert find_start_difference(found, start(found.record, found.root, **changed)) == why


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        ("seal", "seal", None),
        ("seal", "other", "its variable TOKEN changed"),
        ("seal", None, "its variable TOKEN changed"),
        (None, "seal", "its variable TOKEN is secret, and was not recorded"),
    ],
)
def test_a_secret_is_known_by_its_seal(then: str | None, now: str | None, why: str | None) -> None:
    run = Step(TOKEN="***")
    run.begins(run.step, sealed={"TOKEN": then} if then else {})
    found = run.subtree()
    told = {"environment": {"LANG": "C", "TOKEN": "***"}, "seals": {"TOKEN": now} if now else {}}
    assert find_start_difference(found, start(found.record, found.root, **told)) == why


# -- what it dependencies


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
    assert place.find_difference(found) == "the link link leads elsewhere"
    (place.root / "w/link").symlink_to("target")
    assert place.find_difference(found) is None
    place.write("/w/flag", b"")
    assert place.find_difference(found) == "flag is there now"


def test_permissions(place: Place) -> None:
    run = Step()
    run.looks(run.step, "present", "/w/tool", "x")
    run.looks(run.step, "absent", "/w/text", "EACCES x")
    found = run.subtree()
    place.write("/w/tool", b"", mode=0o755)
    place.write("/w/text", b"", mode=0o644)
    assert place.find_difference(found) is None
    place.write("/w/text", b"", mode=0o755)
    assert place.find_difference(found) == "text is there now"
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
    assert place.find_difference(found) == "the order changed in which files were made"
    place.write("/w/b", b"1", mtime=100)
    assert place.find_difference(found) == "the order changed in which files were made"
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


def test_links_lead_within_the_world(place: Place) -> None:
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

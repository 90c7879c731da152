"""Which subtrees of processes can be reused."""

from typing import Any

import pytest
from tests.unit.replay.reuse.recorded_step import Step

from clew.prov.queries.execution_record import Edge, Gap
from clew.replay.reuse.dependency_index import DependencyIndex
from clew.replay.reuse.subtree import NotReusable
from clew.replay.reuse.subtree_analysis import analyze_subtree


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
        ("socket", "it communicates through a socket"),
        ("signal", "a signal passes between it and others"),
    ],
)
@pytest.mark.parametrize("inward", [True, False])
def test_talking_to_other_processes_prevents_reuse(via: str, why: str, inward: bool) -> None:
    run = Step()
    pair = (run.driver, run.step) if inward else (run.step, run.driver)
    run.passes(*pair, via)
    assert run.why() == why


def test_communication_within_the_subtree_is_allowed() -> None:
    run = Step()
    one, other = (run.process(name, parent=run.step) for name in ("one", "other"))
    run.passes(one, other)
    run.ends(one)
    run.ends(other)
    assert run.subtree().members == {run.step, one, other}


def test_a_surviving_child() -> None:
    run = Step()
    run.process("daemon", parent=run.step)
    assert run.why() == "one of its processes continued after its end"


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
    assert run.why() == "it was not recorded completely (shared-memory)"
    run = Step()
    run.reads(run.step, "/w/in", b"1")
    run.gaps.append(Gap(run.top, "content", "changed", "file://machine/w/in"))
    assert run.why() == "the content of /w/in is not stored"


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ([[0, 1, "pipe:0"]], "it reads a pipe"),
        ([[1, 2, "pipe:0"]], "it writes to a pipe"),
        ([[3, 3, "socket:0"]], "it has a socket from its parent"),
        ([[1, 2, "stdout"]], "other processes printed at the same time"),
    ],
)
def test_what_it_is_started_with(held: list[list[Any]], why: str) -> None:
    assert Step(held).why() == why


def test_the_job_server_of_make_is_ignored() -> None:
    assert Step([[3, 1, "pipe:0"], [4, 2, "pipe:0"]]).subtree().dependencies == []


def test_the_network() -> None:
    run = Step()
    key = run.version("/peer", None)
    run.versions[key] = run.versions[key]._replace(locator="tcp://192.0.2.1:80")
    run.used.append(Edge(run.step, key, run.now(), "connect"))
    assert run.why() == "it uses the network"


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
    assert run.why() == "what it wrote to /w/out is not stored"


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
    assert run.why() == "it continues /w/log, which others began"


def test_its_part_of_the_output() -> None:
    held = [[1, 2, "stdout"]]
    run = Step(held)
    run.prints(b"before and mine", run.driver, run.step)
    run.begins(run.step, held, output={"stdout": [11, 15]})
    assert run.subtree().printed == {"stdout": (11, 15)}
    run = Step(held)
    run.prints(b"short", run.step)
    run.begins(run.step, held, output={"stdout": [0, 9]})
    assert run.why() == "its output is not stored"
    run = Step(held)
    run.facets["masked"] = ["stdout"]
    run.prints(b"***", run.step)
    run.begins(run.step, held, output={"stdout": [0, 3]})
    assert run.why() == "a secret was masked in what it printed"

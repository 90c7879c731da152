"""One process as an execution of its own: what it found, and whether it can be run alone."""

from tests.unit.replay.record_builder import RecordBuilder, digest

from clew.replay.compare.entity_names import entity_name
from clew.replay.execution_index import ExecutionIndex
from clew.replay.explain import isolated_process
from clew.replay.sandbox.initial_files import find_initial_files


def sided(run: RecordBuilder) -> ExecutionIndex:
    return ExecutionIndex(run.record(), entity_name)


def three_steps() -> tuple[RecordBuilder, int, int, int]:
    run = RecordBuilder("sh", "run.sh", variables={"HOME": "/h"})
    shell = run.process("sh", "run.sh")
    first = run.process("first", parent=shell)
    run.reads(first, "/w/raw", b"raw")
    run.writes(first, "/w/mid", b"mid")
    run.ends(first)
    second = run.process("second", "x", parent=shell, RATE="1")
    run.reads(second, "/w/mid")
    run.looks(second, "absent", "/w/out", "ENOENT")
    child = run.process("child", parent=second)
    run.writes(child, "/w/out", b"out")
    run.ends(child)
    run.ends(second)
    return run, shell, second, child


def test_what_others_made_before_is_found() -> None:
    run, _, second, child = three_steps()
    side = sided(run)
    unit = isolated_process.isolate_record(side, side.record.activities[second])
    assert unit.itself.command == ["second", "x"]
    assert unit.itself.environment == {"HOME": "/h", "RATE": "1"}
    assert set(unit.activities) - {unit.execution.key} == {second, child}
    met = {entity_name(version.locator): version.found for version in unit.versions.values()}
    assert met == {"/w/mid": True, "/w/out": False}
    files = find_initial_files(unit, lambda _: []).entries
    assert files[b"/w/mid"].digest == digest(b"mid")
    assert b"/w/out" not in files
    assert b"/w/raw" not in files


def test_files_that_the_process_did_not_touch_are_there() -> None:
    run, _, second, _ = three_steps()
    side = sided(run)
    whole = find_initial_files(side.record, lambda _: [])
    own = find_initial_files(
        isolated_process.isolate_record(side, side.record.activities[second]), lambda _: []
    )
    known = isolated_process.merge_initial_files(side, whole, own).entries
    assert known[b"/w/raw"].digest == digest(b"raw")
    assert known[b"/w/mid"].digest == digest(b"mid")
    assert b"/w/out" not in known


def test_a_process_that_met_files_only_stands_alone() -> None:
    run, shell, second, child = three_steps()
    side = sided(run)
    assert all(
        isolated_process.can_run_alone(side, side.record.activities[key])
        for key in (shell, second, child)
    )


def test_a_process_that_read_a_pipe_does_not_but_its_parent_does() -> None:
    run = RecordBuilder("sh")
    shell = run.process("sh")
    left, right = run.process("left", parent=shell), run.process("right", parent=shell)
    run.passes(left, right)
    side = sided(run)
    alone = {
        key: isolated_process.can_run_alone(side, side.record.activities[key])
        for key in (shell, left, right)
    }
    assert alone == {shell: True, left: True, right: False}


def test_a_forked_child_does_not_stand_alone() -> None:
    run = RecordBuilder("sh")
    shell = run.process("sh")
    child = run.process("sh", parent=shell, forked=True)
    side = sided(run)
    assert not isolated_process.can_run_alone(side, side.record.activities[child])


def test_what_a_process_became_is_part_of_it() -> None:
    run = RecordBuilder("sh")
    shell = run.process("sh")
    last = run.becomes(shell, "python")
    side = sided(run)
    assert isolated_process.list_subtree(side, side.record.activities[shell]) == {shell, last}


def test_the_file_it_was_handed_as_its_input() -> None:
    run = RecordBuilder("sh")
    for place, alone in ((0, True), (7, False)):
        process = run.process("sort")
        facets = {"begun": {"held": [[0, 1, "/w/ra%25w", place, 0], [1, 2, "stdout"]]}}
        run.activities[process] = run.activities[process]._replace(facets=facets)
        side = sided(run)
        unit = isolated_process.isolate_record(side, side.record.activities[process])
        assert unit.facets["streams"]["stdin"] == {"kind": "file", "path": "/w/ra%w"}
        assert isolated_process.can_run_alone(side, side.record.activities[process]) is alone


def test_what_it_wrote_through_a_handed_descriptor_is_its_output() -> None:
    run = RecordBuilder("sh")
    sort = run.process("sort")
    out = run.writes(sort, "/w/out", b"1", how="inherited")
    own = run.writes(sort, "/w/own", b"1")
    side = sided(run)
    process = side.record.activities[sort]
    assert isolated_process.wrote_inherited(side, process, side.record.versions[out])
    assert not isolated_process.wrote_inherited(side, process, side.record.versions[own])

"""Which files a commit runs with, and where they stand in a directory: decided without running."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.replay.record_builder import CONTENTS, RecordBuilder, digest

from clew.errors import Damaged
from clew.prov.queries.execution_record import ExecutionRecord
from clew.replay.checkout.changes import find_changes
from clew.replay.checkout.commit_inputs import amend_files, resolve_links
from clew.replay.checkout.working_tree import (
    Checkout,
    TrackedFile,
    checkout_path,
    list_files,
    original_path,
    select_files,
)
from clew.replay.sandbox.initial_files import Entry, InitialFiles, find_initial_files


def kept(path: str, text: str, *, mode: int = 0o644, link: bool = False) -> TrackedFile:
    content = text.encode()
    place = checkout_path(path.encode(), "/w")
    return TrackedFile(place, path.encode(), digest(content), mode, len(content), 5, link)


def found(run: RecordBuilder) -> tuple[ExecutionRecord, InitialFiles]:
    record = run.record()
    return record, find_initial_files(record, lambda answer: CONTENTS[answer].split(b"\0"))


def result(
    line: list[tuple[ExecutionRecord, InitialFiles]],
    before: list[TrackedFile],
    now: list[TrackedFile],
) -> dict[str, Entry]:
    entries = amend_files(line, before, now, lambda name: CONTENTS[name])
    return {p.decode(): e for p, e in line[0][1].with_changes(entries).entries.items()}


def first() -> RecordBuilder:
    run = RecordBuilder("sh", number=1)
    process = run.process("python")
    run.reads(process, "/w/run.py", b"run")
    run.reads(process, "/w/data.csv", b"data")
    run.reads(process, "/usr/lib/python/os.py", b"os")
    run.reads(process, "/usr/lib/python/json.py", b"json")
    run.reads(process, "/venv/site-packages/np.py", b"np", package="pkg:pypi/numpy@2")
    return run


def test_what_a_checkout_holds() -> None:
    record, scene = found(first())
    assert set(select_files(record, scene)) == {b"/w/run.py", b"/w/data.csv"}
    assert [(k.place, k.path) for k in list_files(record, scene)] == [
        (b"data.csv", b"/w/data.csv"),
        (b"run.py", b"/w/run.py"),
    ]


def test_a_place_that_leads_out_is_refused() -> None:
    run = RecordBuilder("sh")
    run.reads(run.process("cat"), "/w/../../etc/cron.d/x.txt", b"evil")
    with pytest.raises(Damaged):
        list(list_files(*found(run)))


def test_changed_added_and_deleted() -> None:
    line = [found(first())]
    before = list(list_files(*line[0]))
    entries = result(line, before, [kept("/w/run.py", "new"), kept("/w/b/more", "m", mode=0o755)])
    assert entries["/w/run.py"] == Entry("file", 0o644, 5, 3, digest(b"new"))
    assert entries["/w/b/more"].mode == 0o755
    assert entries["/w/b"].kind == "directory"
    assert "/w/data.csv" not in entries
    assert entries["/usr/lib/python/os.py"].digest == digest(b"os")


def test_what_is_as_it_was_keeps_its_time() -> None:
    line = [found(first())]
    entries = result(line, list(list_files(*line[0])), [kept("/w/run.py", "run")])
    assert entries["/w/run.py"] == line[0][1].entries[b"/w/run.py"]
    entries = result(line, list(list_files(*line[0])), [kept("/w/run.py", "run", mode=0o755)])
    assert (entries["/w/run.py"].mode, entries["/w/run.py"].mtime) == (0o755, 5)


def test_the_rest_comes_from_those_it_descends_from() -> None:
    """A run that ended early: of one library it saw the name alone, of the other nothing."""
    early = RecordBuilder("sh", number=2)
    process = early.process("python")
    early.reads(process, "/w/run.py", b"exit")
    early.lists(process, "/usr/lib/python", "os.py", "never.py")
    line = [found(early), found(first())]
    assert line[0][1].entries[b"/usr/lib/python/os.py"].kind == "stub"
    entries = result(line, [kept("/w/run.py", "exit")], [kept("/w/run.py", "again")])
    assert entries["/usr/lib/python/os.py"].digest == digest(b"os")
    assert entries["/usr/lib/python/json.py"].digest == digest(b"json")
    assert entries["/usr/lib/python/never.py"].kind == "stub"
    assert "/w/data.csv" not in entries  # the checkout has it not


def test_what_was_deleted_is_not_even_a_name() -> None:
    listing = RecordBuilder("sh", number=2)
    process = listing.process("ls")
    listing.lists(process, "/w", "data.csv", "run.py")
    line = [found(listing), found(first())]
    both = [kept("/w/data.csv", "data"), kept("/w/run.py", "run")]
    assert result(line, both, both)["/w/data.csv"].digest == digest(b"data")
    assert "/w/data.csv" not in result(line, both, both[1:])


def test_links() -> None:
    run = first()
    run.looks(run.process("ls"), "link", "/w/current", "v1")
    line = [found(run)]
    before = list(list_files(*line[0]))
    now = [*before, kept("/w/current/x", "x"), kept("/w/new", "v1/x", link=True)]
    entries = result(line, before, now)
    assert entries["/w/v1/x"].digest == digest(b"x")
    assert (entries["/w/new"].kind, entries["/w/new"].target) == ("link", b"v1/x")
    assert entries["/w/current"].kind == "link"


def test_links_that_lead_in_a_circle_end() -> None:
    entries = {b"/a": Entry("link", target=b"b"), b"/b": Entry("link", target=b"a")}
    assert resolve_links(b"/a/x", entries) in (b"/a/x", b"/b/x")


NAMES = st.sampled_from(["a", "b", "_outside", ".clew", ".clew-checkout", "c.txt"])


@given(st.lists(NAMES, min_size=1, max_size=5), st.sampled_from(["/", "/a", "/a/b", "/b"]))
def test_a_place_tells_its_path(parts: list[str], cwd: str) -> None:
    path = os.fsencode("/" + "/".join(parts))
    place = checkout_path(path, cwd)
    assert original_path(place, cwd) == path
    assert place.split(b"/")[0] not in (b".clew", b".clew-checkout", b"")


FILES = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.sampled_from("xy"), st.sampled_from([0o644, 0o755]))
)


@given(FILES, FILES)
def test_changes_are_all_that_differs(
    before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]]
) -> None:
    def all_of(files: dict[str, tuple[str, int]]) -> list[TrackedFile]:
        return [kept(f"/w/{n}", text, mode=mode) for n, (text, mode) in files.items()]

    now = {k.place: k for k in all_of(after)}
    directory = Checkout(None, "p", "/", "u", "e1", "/w", tuple(all_of(before)))  # type: ignore[arg-type]
    found = find_changes(directory, now)
    assert {k.place.decode() for k in found.added} == after.keys() - before.keys()
    assert {k.place.decode() for k in found.deleted} == before.keys() - after.keys()
    assert {new.place.decode() for _, new in found.modified} == {
        name for name in before.keys() & after.keys() if before[name] != after[name]
    }
    assert bool(found) == (before != after)

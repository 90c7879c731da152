"""What an execution found when it began, decided from its record."""

import pytest
from tests.unit.replay.record_builder import RecordBuilder, digest, read

from clew.errors import Damaged
from clew.replay.sandbox.initial_files import Entry, InitialFiles, find_initial_files


def of(run: RecordBuilder) -> InitialFiles:
    return find_initial_files(run.record(), lambda name: (read(name) or b"").split(b"\0"))


def kinds(found: InitialFiles) -> dict[str, str]:
    return {path.decode(): entry.kind for path, entry in sorted(found.entries.items())}


def test_what_was_read_first_not_what_was_written_later() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.reads(p, "/w/in", b"old")
    run.writes(p, "/w/in", b"new")
    run.reads(p, "/w/in")
    run.writes(p, "/w/out", b"result")
    found = of(run)
    assert kinds(found) == {"/w": "directory", "/w/in": "file"}
    assert found.entries[b"/w/in"].digest == digest(b"old")
    assert found.missing == []


def test_content_that_was_not_stored_is_missing() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.reads(p, "/w/in", None)
    assert of(run).missing == [b"/w/in"]


def test_looks_make_stubs_directories_and_links() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.looks(p, "times", "/w/size", "100600 12 99")
    run.looks(p, "present", "/w/there")
    run.looks(p, "times", "/w/directory", "40750 4096 7")
    run.looks(p, "absent", "/w/never", "ENOENT")
    run.looks(p, "link", "/w/link", "../else")
    found = of(run)
    assert found.entries[b"/w/size"] == Entry("stub", 0o600, 99, 12)
    assert found.entries[b"/w/there"] == Entry("stub", 0o644)
    assert found.entries[b"/w/directory"] == Entry("directory", 0o750, 7)
    assert found.entries[b"/w/link"] == Entry("link", 0o777, target=b"../else")
    assert b"/w/never" not in found.entries


def test_the_earliest_look_decides() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.looks(p, "absent", "/w/made", "ENOENT")
    run.writes(p, "/w/made", b"x")
    run.looks(p, "times", "/w/made", "100644 1 5")
    run.looks(p, "absent", "/w/d", "ENOENT")
    run.writes(p, "/w/d/inside", b"x")
    assert kinds(of(run)) == {"/w": "directory"}


def test_listed_names_become_stubs() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.reads(p, "/w/d/read", b"x")
    run.writes(p, "/w/d/made", b"x")
    run.looks(p, "listing", "/w/d", digest(b"made\0other\0read"))
    assert kinds(of(run)) == {
        "/w": "directory",
        "/w/d": "directory",
        "/w/d/other": "stub",
        "/w/d/read": "file",
    }


def test_what_is_searched_is_a_directory() -> None:
    """Looked for in a file, the answer would have been that it is no directory."""
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.lists(p, "/w", "a", "b")
    run.looks(p, "absent", "/w/a/x", "ENOENT")
    run.looks(p, "absent", "/w/b/x", "ENOTDIR")
    run.looks(p, "present", "/c")
    run.looks(p, "absent", "/c/x", "ENOENT")
    assert kinds(of(run)) == {
        "/c": "directory",
        "/w": "directory",
        "/w/a": "directory",
        "/w/b": "stub",
    }


def test_a_listing_of_the_root() -> None:
    """The sandbox mounts on /proc and /dev; a listed name that is no directory is there, too."""
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.lists(p, "/", "dev", "proc", "swapfile", "opt")
    run.looks(p, "absent", "/swapfile", "ENOTDIR")
    run.looks(p, "times", "//opt", "40755 4096 5")
    run.looks(p, "present", "/sys", "")
    assert kinds(of(run)) == {
        "/dev": "directory",
        "/opt": "directory",
        "/proc": "directory",
        "/swapfile": "stub",
        "/sys": "directory",
        "/w": "directory",
    }


def test_paths_through_links_settle_where_they_lead() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.looks(p, "link", "/lib", "usr/lib")
    run.reads(p, "/usr/lib/x.so", b"x")
    run.looks(p, "times", "/lib/../lib/y.so", "100644 3 4")
    run.looks(p, "absent", "/lib/z.so", "ENOENT")
    assert kinds(of(run)) == {
        "/lib": "link",
        "/usr": "directory",
        "/usr/lib": "directory",
        "/usr/lib/x.so": "file",
        "/usr/lib/y.so": "stub",
        "/w": "directory",
    }


def test_nothing_lies_below_a_file_or_a_link() -> None:
    """Else laying it out would write through the link, onto the host."""
    found = InitialFiles({b"/a": Entry("link", target=b"/etc")}).with_changes(
        {b"/a/passwd": Entry("stub")}
    )
    assert kinds(found) == {"/a": "link"}


def test_nothing_climbs_out() -> None:
    """A record may come from somebody else."""
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.lists(p, "/w", "../up", "..", "a/b", "good")
    assert kinds(of(run)) == {
        "/w": "directory", "/w/a": "directory", "/w/a/b": "stub", "/w/good": "stub",
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/w/../../../evil", "/w/./x"])
def test_no_witness_writes_such_a_path(path: str) -> None:
    run = RecordBuilder("sh")
    run.reads(run.process("sh"), path, b"x")
    with pytest.raises(Damaged):
        of(run)


def test_no_link_is_where_the_machines_own_is_mounted() -> None:
    """The program that makes the sandbox would follow it."""
    run = RecordBuilder("sh")
    p = run.process("sh")
    for name in ("/proc", "/dev", "/sys"):
        run.looks(p, "link", name, "/oldroot/home")
    assert "link" not in kinds(of(run)).values()


def test_pseudo_files_are_left_out() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    run.reads(p, "/proc/cpuinfo", None)
    run.reads(p, "/dev/urandom", None)
    run.looks(p, "present", "/sys/devices")
    assert kinds(of(run)) == {"/w": "directory"}
    assert of(run).missing == []


@pytest.mark.parametrize("entry", [Entry("stub"), None])
def test_equal_initial_files_have_equal_digests(entry: Entry | None) -> None:
    found = InitialFiles({b"/a": Entry("stub"), b"/b": Entry("directory")})
    again = InitialFiles({b"/b": Entry("directory"), b"/a": Entry("stub")})
    assert found.digest == again.digest
    assert (found.with_changes({b"/a": entry}).digest == found.digest) == (entry is not None)

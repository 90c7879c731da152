"""Every way a file is read, written, renamed, linked, truncated or deleted is seen."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.programs.compiling import compiled

KINDS = [(), ("-static",), ("-m32",)]


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_reading(project: Project, built: Path, flags: tuple[str, ...]) -> None:
    opens = compiled("opens", built, *flags)
    ways = ["open", "raw", "openat2", "fopen", "reopen", "raw-open"]
    (project / "folder").mkdir()
    for way in ways:
        (project / f"folder/{way}").write_text(way)
    for way in ("openat", "openat-path"):
        (project / f"folder/{way}").write_text(way)
    lines = [f"{opens} {way} folder/{way} &&" for way in ways]
    lines += [f"{opens} {way} folder {way} &&" for way in ("openat", "openat-path")]
    ran = project.sh(" ".join([*lines, "true"]))
    assert ran.status == 0, ran.err
    assert ran.out.decode() == "".join([*ways, "openat", "openat-path"])
    expected = {f"folder/{way}": "input" for way in [*ways, "openat", "openat-path"]}
    assert ran.roles() == expected
    for name in expected:
        assert ran.cat(name, "@input") == os.path.basename(name).encode()
        assert {fact.how for fact in ran.used(name)} == {"open"}
    assert ran.gaps == []


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_writing(project: Project, built: Path, flags: tuple[str, ...]) -> None:
    opens = compiled("opens", built, *flags)
    (project / "folder").mkdir()
    alone = ["creat", "raw-write"]
    into = ["openat-write", "openat2-write"]
    lines = [f"{opens} {way} folder/{way} &&" for way in alone]
    lines += [f"{opens} {way} folder {way} &&" for way in into]
    ran = project.sh(" ".join([*lines, "true"]))
    assert ran.status == 0, ran.err
    assert ran.roles() == {f"folder/{way}": "output" for way in [*alone, *into]}
    for way in [*alone, *into]:
        assert ran.cat(f"folder/{way}") == b"new\n"
        assert ran.writers(f"folder/{way}") == {opens.name}
        assert (opens.name, "absent", "ENOENT") in ran.looked(f"folder/{way}")


@pytest.mark.parametrize("flags", KINDS, ids=str)
@pytest.mark.parametrize("way", ["tmpfile", "tmpfile-empty"])
def test_a_file_that_gets_its_name_last(
    project: Project, built: Path, way: str, flags: tuple[str, ...]
) -> None:
    opens = compiled("opens", built, *flags)
    ran = project.exec(opens, way, ".", "named")
    assert ran.status == 0, ran.err
    assert ran.file("named")["role"] == "output"
    assert ran.cat("named") == b"new\n"
    assert ran.writers("named") == {opens.name}
    others = {name: role for name, role in ran.roles().items() if name != "named"}
    assert set(others.values()) <= {"transient"}


def test_a_file_that_never_gets_a_name(project: Project, built: Path) -> None:
    ran = project.exec(compiled("opens", built), "tmpfile-nameless", ".")
    assert ran.status == 0
    assert set(ran.roles().values()) <= {"transient"}
    assert ran.gaps == []


@pytest.mark.parametrize("flags", KINDS, ids=str)
@pytest.mark.parametrize("way", ["reopen-write", "dev-fd-write"])
def test_a_descriptor_opened_again(
    project: Project, built: Path, way: str, flags: tuple[str, ...]
) -> None:
    (project / "file").write_text("old\n")
    with (project / "other").open("wb") as other:
        ran = project.exec(
            compiled("opens", built, *flags), way, "file", stdout=other, stderr=subprocess.PIPE,
            capture_output=False,
        )  # fmt: skip
    assert ran.status == 0
    file = ran.file("file")
    assert (file["role"], file["read"], file["written"]) == ("output", True, True)
    assert ran.cat("file") == b"new\n"
    assert ran.cat("file", "@input") == b"old\n"


def test_reading_and_writing_are_distinguished(project: Project) -> None:
    for name in ("read", "both", "replaced", "appended", "moved", "removed"):
        (project / name).write_text(name)
    ran = project.sh(
        "cat read; cat both; echo x >> both; echo x > replaced; echo x >> appended;"
        "mv moved there; rm removed; echo x > made; echo x > brief; rm brief"
    )
    seen = {
        name: (ran.file(name)["role"], ran.file(name)["read"], ran.file(name)["written"])
        for name in ran.roles()
    }
    assert seen == {
        "read": ("input", True, False),
        "both": ("output", True, True),
        "replaced": ("output", False, True),
        "appended": ("output", False, True),
        "moved": ("input", True, False),
        "there": ("output", False, True),
        "removed": ("input", False, False),
        "made": ("output", False, True),
        "brief": ("transient", False, True),
    }
    assert ran.cat("both", "@input") == b"both"
    assert ran.cat("both") == b"bothx\n"
    assert ran.cat("appended", "@input") == b"appended"
    assert {fact.how for fact in ran.used("appended")} == {"append"}
    assert {fact.how for fact in ran.invalidated("removed")} == {"delete"}
    assert {fact.how for fact in ran.invalidated("replaced")} == set()


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_names_change(project: Project, built: Path, flags: tuple[str, ...]) -> None:
    changes = compiled("changes", built, *flags)
    (project / "d").mkdir()
    for name in ("a", "d/b", "e", "f", "g", "h", "i", "j", "d/k", "l"):
        (project / name).write_text(f"was {name}\n")
    ran = project.sh(
        f"{changes} rename a a2 && {changes} renameat d b b2 && {changes} exchange e f &&"
        f"{changes} noreplace g g2 && {changes} noreplace-there h i && {changes} unlink j &&"
        f"{changes} unlinkat d k && {changes} raw-unlink l"
    )
    assert ran.status == 0, ran.err
    for old, new in [("a", "a2"), ("d/b", "d/b2"), ("e", "f"), ("f", "e"), ("g", "g2")]:
        assert ran.file(new)["role"] == "output", new
        assert ran.cat(new) == f"was {old}\n".encode()
        assert ran.writers(new) == {changes.name}
        assert ran.file(old)["read"], old
    assert "h" not in ran.roles() and "i" not in ran.roles()
    for name in ("j", "d/k", "l"):
        assert ran.file(name)["role"] == "input"
        assert {(fact.who, fact.how) for fact in ran.invalidated(name)} == {
            (changes.name, "delete")
        }
        assert not (project / name).exists()


def test_an_exchange_of_unopened_files_swaps_their_lineages(project: Project, built: Path) -> None:
    (project / "e").write_text("was e\n")
    (project / "f").write_text("was f\n")
    first = project.sh("echo new e > e; echo new f > f")
    assert first.status == 0
    ran = project.exec(compiled("changes", built), "exchange", "e", "f")
    for old, new in [("e", "f"), ("f", "e")]:
        found = ran.cat(old, "@1")
        assert found == f"new {old}\n".encode()
        assert ran.cat(new) == found


def test_a_folder_is_renamed_with_what_is_in_it(project: Project) -> None:
    (project / "old/deep").mkdir(parents=True)
    (project / "old/untouched").write_text("untouched\n")
    (project / "old/deep/too").write_text("too\n")
    ran = project.sh("cat old/untouched; echo x > old/made; mv old new; cat new/deep/too")
    assert ran.file("new/made")["role"] == "output"
    assert ran.cat("new/made") == b"x\n"
    assert ran.file("new/untouched")["role"] == "output"
    assert ran.file("new/deep/too")["role"] == "output"
    assert ran.cat("new/deep/too") == b"too\n"
    assert ran.writers("new/deep/too") == {"mv"}
    assert ran.cat("old/untouched", "@input") == b"untouched\n"
    assert ran.file("old/made")["role"] == "transient"


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_hard_links(project: Project, built: Path, flags: tuple[str, ...]) -> None:
    changes = compiled("changes", built, *flags)
    (project / "d").mkdir()
    (project / "a").write_text("x\n")
    (project / "d/c").write_text("y\n")
    ran = project.sh(f"{changes} link a b && {changes} linkat d c e")
    assert ran.status == 0, ran.err
    assert ran.roles() == {"a": "input", "b": "output", "d/c": "input", "d/e": "output"}
    assert ran.aliases() == {("a", "b"), ("d/c", "d/e")}
    assert (ran.cat("b"), ran.cat("d/e")) == (b"x\n", b"y\n")
    assert ran.writers("d/e") == {changes.name}
    assert ran.gaps == []


def test_both_names_of_a_linked_output_have_its_content(project: Project) -> None:
    ran = project.sh("echo new > a; ln a b; echo key > .env; ln .env c")
    assert ran.cat("a") == ran.cat("b") == b"new\n"
    stored = {name: ran.file(name)["stored"] for name in ("a", "b", ".env", "c")}
    assert stored == {"a": True, "b": True, ".env": False, "c": False}


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_symbolic_links(project: Project, built: Path, flags: tuple[str, ...]) -> None:
    changes = compiled("changes", built, *flags)
    (project / "d").mkdir()
    (project / "a").write_text("x\n")
    ran = project.sh(f"{changes} symlink a b && {changes} symlinkat d c ../a && cat b d/c")
    assert (ran.status, ran.out) == (0, b"x\nx\n"), ran.err
    assert ran.roles() == {"a": "input", "b": "output", "d/c": "output"}
    assert ran.writers("b") == ran.writers("d/c") == {changes.name}
    assert ("cat", "link", "a") in ran.looked("b")
    assert ("cat", "link", "../a") in ran.looked("d/c")


def test_a_loop_of_links(project: Project) -> None:
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    ran = project.sh("cat a; [ -e b ]; ls -l a > list")
    assert b"Too many levels" in ran.err
    assert ("cat", "absent", "ELOOP") in ran.looked("a")
    assert ran.roles() == {"list": "output"}


@pytest.mark.parametrize("flags", KINDS, ids=str)
@pytest.mark.parametrize("way", ["truncate", "ftruncate", "fallocate"])
def test_truncating(project: Project, built: Path, way: str, flags: tuple[str, ...]) -> None:
    (project / "f").write_text("123456\n")
    ran = project.exec(compiled("changes", built, *flags), way, "f")
    assert ran.status == 0
    assert ran.file("f")["role"] == "output"
    assert ran.cat("f") == (project / "f").read_bytes() != b"123456\n"
    assert ran.cat("f", "@1") == b"123456\n"
    assert {fact.how for fact in ran.used("f")} == {"append"}


@pytest.mark.parametrize("way", ["copy-range", "sendfile"])
def test_copies_inside_the_kernel(project: Project, built: Path, way: str) -> None:
    (project / "a").write_text("x\n")
    ran = project.exec(compiled("opens", built), way, "a", "b")
    assert ran.status == 0
    assert ran.roles() == {"a": "input", "b": "output"}
    assert ran.cat("b") == b"x\n"


@pytest.mark.parametrize("flags", KINDS, ids=str)
def test_io_uring_is_refused(project: Project, built: Path, flags: tuple[str, ...]) -> None:
    assert project.exec(compiled("opens", built, *flags), "uring").status == 0


def test_permissions_make_a_version(project: Project, built: Path) -> None:
    (project / "f").write_text("x\n")
    (project / "f").chmod(0o644)
    ran = project.exec(compiled("changes", built), "chmod", "f")
    assert ran.file("f")["role"] == "output"
    assert ran.cat("f") == ran.cat("f", "@1") == b"x\n"
    assert {fact.how for fact in ran.generated("f")} == {"metadata"}


def test_every_open_counts(project: Project, built: Path) -> None:
    (project / "f").write_text("one\n")
    running = project.start_exec(compiled("opens", built), "twice", "f")
    assert running.stdout is not None
    assert running.stdout.readline() == b"one\n"
    (project / "new").write_text("two, by somebody else\n")
    (project / "new").rename(project / "f")
    ran = project.finish_exec(running, b".")
    assert ran.out == b"two, by somebody else\n"
    assert {fact.ordinal for fact in ran.used("f")} == {1, 2}
    # It may have been changed before anybody could keep it: then that is said.
    assert ran.kept("f", 1) in (b"one\n", None)
    assert ran.cat("f", "@2") == b"two, by somebody else\n"
    assert ran.file("f")["role"] == "input"


NAMES = [
    b"with space",
    b" lead",
    "ünïcode → 名".encode(),
    b"not \xff text",
    b"new\nline",
    b"q'\"\\%41",
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_any_name(project: Project, name: bytes) -> None:
    source = os.fsencode(project.folder) + b"/" + name
    Path(os.fsdecode(source)).write_text("x\n")
    ran = project.exec("cp", name, name + b"2")
    assert ran.status == 0
    shown = {
        (file["path"], file.get("path_b64"), file["role"])
        for file in ran.show["files"]
        if file["path"].startswith(str(project.folder))
    }
    assert {role for _, _, role in shown} == {"input", "output"}
    assert ran.readers(name) == ran.writers(name + b"2") == {"cp"}
    assert all(bool(encoded) is (b"\xff" in name) for _, encoded, _ in shown)
    assert ran.cat(name + b"2") == ran.cat(name, "@input") == b"x\n"


def test_a_link_that_is_not_text(project: Project) -> None:
    (project / "l").symlink_to(os.fsdecode(b"t\xff"))
    Path(os.fsdecode(os.fsencode(project.folder) + b"/t\xff")).write_text("x\n")
    ran = project.exec("cat", "l")
    assert ran.out == b"x\n"
    assert ("cat", "link", "t%FF") in ran.looked("l")


def test_paths_longer_than_the_library_records(project: Project) -> None:
    folder = project.folder
    for _ in range(6):
        folder = folder / ("d" * 200)
    folder.mkdir(parents=True)
    (folder / "in").write_text("x\n")
    (project / "short").write_text("y\n")
    ran = project.sh(
        f"cat {folder}/in; [ -e {folder}/not ]; cd {folder} && cat in; cat ../../../../../../short"
    )
    assert ran.out == b"x\nx\ny\n"
    assert ran.file(str(folder / "in"))["role"] == "input"
    assert ran.file("short")["role"] == "input"
    assert ("sh", "absent", "ENOENT") in ran.looked(str(folder / "not"))


def test_folders_deeper_than_any_path(project: Project, built: Path) -> None:
    """Beyond 4096 bytes nothing has a name: the run goes on, and a gap says what was not seen."""
    ran = project.exec(compiled("opens", built), "deep", "30")
    assert (ran.status, ran.out) == (0, b"new\n")
    assert not any("bottom" in name for name in ran.roles())
    assert any(gap["what"] == "path" for gap in ran.gaps)


def test_a_working_folder_that_vanishes(project: Project) -> None:
    (project / "here").mkdir()
    ran = project.sh("cd here; rmdir ../here; cat missing; echo x > made; echo y > ../left; true")
    assert ran.status == 0
    assert (project / "left").exists() is ("left" in ran.roles())


def test_a_program_that_opens_in_signal_handlers(project: Project, built: Path) -> None:
    (project / "a").write_text("a")
    (project / "b").write_text("b")
    ran = project.exec(compiled("opens", built), "interrupted", "a", "b")
    assert ran.status == 0
    assert ran.roles() == {"a": "input", "b": "input"}


def test_a_named_pipe(project: Project) -> None:
    ran = project.sh("mkfifo p; (echo x > p) & cat p; wait")
    assert ran.out == b"x\n"
    assert ("sh", "cat", "pipe") in ran.informed()
    assert "p" not in ran.roles()

"""What was read stays restorable whatever the run does to it, or a gap says why not."""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.programs.compiling import compiled

CHANGES = {
    "overwritten in place": "printf 'NEW' | dd of=f conv=notrunc status=none",
    "saved by rename": "echo new > f.tmp; mv f.tmp f",
    "appended to": "echo more >> f",
    "truncated": "truncate -s 2 f",
    "replaced": "echo new > f",
    "emptied": ": > f",
    "deleted": "rm f",
    "deleted and made again": "rm f; echo new > f",
    "edited by sed": "sed -i s/old/new/ f",
    "moved away": "mv f g",
    "moved away and made again": "mv f g; echo new > f",
    "copied over": "cp other f",
    "linked over": "ln -f other f",
    "in a folder that goes": "rm -r ../project/d; rm f",
}


@pytest.mark.parametrize("line", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("big", [False, True], ids=["small", "big"])
def test_a_read_file_that_is_then_changed(project: Project, line: str, big: bool) -> None:
    old = b"old content\n" * (200_000 if big else 1)
    (project / "d").mkdir()
    (project / "f").write_bytes(old)
    (project / "other").write_text("other\n")
    ran = project.sh(f"cat f > /dev/null; {line}")
    assert ran.status == 0, ran.err
    assert ran.cat("f", "@input") == old
    assert ran.cat("f", "@1") == old
    assert ran.gaps == []
    if (project / "f").exists():
        assert ran.cat("f") == (project / "f").read_bytes()


def test_mapped_memory_is_written_through(project: Project, built: Path) -> None:
    (project / "f").write_text("old content\n")
    ran = project.exec(compiled("opens", built), "mmap-write", "f")
    assert ran.status == 0
    assert ran.cat("f", "@input") == b"old content\n"
    assert ran.cat("f") == b"NEW\ncontent\n"
    file = ran.file("f")
    assert (file["role"], file["read"], file["written"]) == ("output", True, True)


@pytest.mark.parametrize("flags", [(), ("-static",), ("-m32",)], ids=str)
@pytest.mark.parametrize("moved", [False, True], ids=["in place", "renamed"])
@pytest.mark.parametrize("shared_memory", [False, True], ids=["disk", "memory"])
def test_a_reader_while_another_writes_through_memory(
    project: Project, built: Path, flags: tuple[str, ...], moved: bool, shared_memory: bool
) -> None:
    """The file's times need not tell of such a change, in memory they never do."""
    opens = compiled("opens", built, *flags)
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if shared_memory else project.folder))
    try:
        (place / "f").write_text("old content\n")
        assert project.exec("cat", place / "f").out == b"old content\n"
        name = "g" if moved else "f"
        await_word = "dd bs=1 count=1 of=/dev/null status=none < ready"
        ran = project.sh(
            f"mkfifo ready go; exec 3<>ready 4<>go; ({opens} mmap-slowly {place}/f > ready < go) &"
            f"{await_word}; {f'mv {place}/f {place}/g;' if moved else ''}"
            f"cat {place}/{name} > seen; echo . > go; wait"
        )
        assert (ran.status, ran.cat("seen")) == (0, b"one\ncontent\n"), ran.err
        assert ran.cat(place / "f", "@input") == b"old content\n"
        (read,) = {fact.ordinal for fact in ran.used(place / name) if fact.who == "cat"}
        assert ran.kept(place / name, read) in (b"one\ncontent\n", None)
        assert ran.cat(place / name) == b"two\ncontent\n"
        again = project.exec("cat", place / name)
        assert again.cat(place / name) == again.out == b"two\ncontent\n"
    finally:
        shutil.rmtree(place)


def test_a_static_program_reads_what_another_replaces(project: Project, built: Path) -> None:
    (project / "f").write_text("old\n")
    ran = project.sh(f"{compiled('opens', built, '-static')} open f; echo new > f")
    assert ran.out == b"old\n"
    assert ran.cat("f", "@input") == b"old\n"
    assert ran.cat("f") == b"new\n"


def test_a_database(project: Project) -> None:
    path = project / "base.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE t (x)")
        base.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(5000)))
        base.commit()
    before = path.read_bytes()
    code = (
        "import sqlite3; b = sqlite3.connect('base.db');"
        "b.execute('UPDATE t SET x = -x'); b.commit();"
        "print(b.execute('SELECT sum(x) FROM t').fetchone()); b.close()"
    )
    ran = project.exec(sys.executable, "-c", code)
    assert ran.status == 0
    assert ran.cat("base.db", "@input") == before
    assert ran.cat("base.db") == path.read_bytes() != before
    assert ran.file("base.db-journal")["role"] == "transient"
    assert ran.gaps == []


def test_every_version_that_was_read_is_kept(project: Project) -> None:
    ran = project.sh("for n in 1 2 3; do echo $n > f; cat f > copy$n; done")
    assert [ran.cat("f", f"@{n}") for n in (1, 2, 3)] == [b"1\n", b"2\n", b"3\n"]
    assert {(fact.who, fact.ordinal) for fact in ran.used("f")} == {
        ("cat", 1),
        ("cat", 2),
        ("cat", 3),
    }
    assert ran.gaps == []


def test_there_and_back_is_three_versions(project: Project) -> None:
    (project / "f").write_text("A\n")
    ran = project.sh("cat f > x; echo B > f; cat f > y; echo A > f; cat f > z")
    assert [ran.cat("f", f"@{n}") for n in (1, 2, 3)] == [b"A\n", b"B\n", b"A\n"]
    assert [fact.made for fact in sorted(ran.used("f"), key=lambda f: f.ordinal)] == [
        False,
        True,
        True,
    ]


def test_a_reader_while_the_writer_still_writes(project: Project, built: Path) -> None:
    opens = compiled("opens", built)
    running = project.start_exec("sh", "-c", f"{opens} slowly f")
    assert running.stdout is not None
    assert running.stdout.read(1) == b"."
    ran = project.finish_exec(running, b".")
    assert ran.cat("f") == b"first\nsecond\n"
    await_word = "dd bs=1 count=1 of=/dev/null status=none < ready"
    ran = project.sh(
        "mkfifo ready go; exec 3<>ready 4<>go;"
        f"({opens} slowly g > ready < go) & {await_word}; cat g > seen; echo . > go; wait"
    )
    assert ran.status == 0, ran.err
    assert ran.cat("seen") == b"first\n"
    assert ran.cat("g") == b"first\nsecond\n"
    reads = {fact.ordinal for fact in ran.used("g") if fact.who == "cat"}
    assert len(reads) == 1
    assert ran.kept("g", reads.pop()) in (b"first\n", None)


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "at once"])
@pytest.mark.parametrize("outside", ["append", "replace", "rewrite"])
def test_changed_by_another_program_while_it_is_open(
    project: Project, built: Path, outside: str, stored: bool
) -> None:
    """Never recorded with bytes that were not read, and the doubt is said."""
    path = project / "f"
    path.write_text("one\n")
    running = project.start_exec(compiled("opens", built), "later", "f")
    assert running.stdout is not None
    assert running.stdout.read(1) == b"."
    if stored:  # there is no sign of it from outside: longer than it takes
        time.sleep(2)
    if outside == "append":
        with path.open("a") as file:
            file.write("by somebody else\n")
    elif outside == "rewrite":
        path.write_text("two\n")
    else:
        (project / "new").write_text("new\n")
        (project / "new").rename(path)
    ran = project.finish_exec(running, b".")
    if outside == "replace":  # the open file kept its bytes
        assert ran.out == b"one\n"
        assert ran.kept("f", 1) in (b"one\n", None)
        return
    assert ran.out == path.read_bytes()
    assert ran.kept("f", 1) in (b"one\n", None)
    assert [gap["path"] for gap in ran.gaps if gap["what"] == "content"] == [str(path)]


def test_changed_by_another_program_after_the_last_read(project: Project, built: Path) -> None:
    (project / "f").write_text("one\n")
    (project / "g").write_text("x\n")
    line = f"cat f; {compiled('opens', built)} later g"
    running = project.start_exec("sh", "-c", line)
    assert running.stdout is not None
    assert running.stdout.read(5) == b"one\n."
    (project / "f").write_text("two\n")
    ran = project.finish_exec(running, b".")
    assert ran.kept("f", 1) in (b"one\n", None)


def test_appended_to_by_another_program_after_it_was_read(project: Project) -> None:
    """Whoever read it still has it open: what came later it did not read."""
    (project / "f").write_text("one\n")
    code = "import sys; f = open('f'); print(f.read(), end='', flush=True); sys.stdin.read()"
    running = project.start_exec(sys.executable, "-c", code)
    assert running.stdout is not None
    assert running.stdout.readline() == b"one\n"
    with (project / "f").open("a") as file:
        file.write("by somebody else\n")
    ran = project.finish_exec(running)
    assert ran.kept("f", 1) in (b"one\n", None)
    assert [gap["path"] for gap in ran.gaps] == [str(project / "f")]


def test_an_output_changed_by_another_program(project: Project, built: Path) -> None:
    """What a process left, and what another read there, are two things."""
    (project / "g").write_text("x\n")
    running = project.start_exec("sh", "-c", f"cp g f; {compiled('opens', built)} later g; cat f")
    assert running.stdout is not None
    assert running.stdout.read(1) == b"."
    (project / "f").write_text("not the run's own\n")
    ran = project.finish_exec(running, b".")
    assert ran.out == b"x\nnot the run's own\n"
    read = [fact for fact in ran.used("f") if fact.who == "cat"]
    assert [fact.made for fact in read] == [False]
    assert ran.writers("f") == {"cp"}


def test_a_child_continues_with_the_file_its_parent_opened(project: Project) -> None:
    code = (
        "import os, time\n"
        "parent = os.getpid()\n"
        "file = open('log', 'w', buffering=1)\n"
        "file.write('parent\\n')\n"
        "if os.fork() == 0:\n"
        "    while os.getppid() == parent: time.sleep(0.01)\n"
        "    file.write('child\\n')\n"
    )
    ran = project.exec(sys.executable, "-c", code)
    assert ran.cat("log") == b"parent\nchild\n"
    assert ran.gaps == []


def test_without_content_nothing_is_stored(project: Project) -> None:
    (project / "f").write_text("old\n")
    ran = project.sh("cat f; echo new > f", options=("--no-content",))
    assert ran.status == 0
    assert ran.file("f")["stored"] is False


def test_excluded_files_keep_their_digest(project: Project) -> None:
    (project / "f.big").write_text("old\n")
    ran = project.sh("cat f.big", options=("--exclude", "*.big"))
    assert ran.file("f.big")["digest"].startswith("blake3:")
    assert ran.file("f.big")["stored"] is False


def test_a_file_too_closed_to_read(project: Project) -> None:
    """A user who may not read a file learns nothing from it, and that is what is recorded."""
    secret = project / "secret"
    secret.write_text("x\n")
    secret.chmod(0)
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("this user cannot become another (setpriv needs root)")
    project.folder.chmod(0o755)
    for folder in project.folder.parents:
        if folder.stat().st_uid == project.folder.stat().st_uid and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)
    ran = project.exec(*drop, "cat", "secret")
    assert ran.status == 1
    assert b"ld.so" not in ran.err
    assert ("cat", "absent", "EACCES") in ran.looked("secret")
    assert "secret" not in ran.roles()

"""`clew recreate`: a file made again, by as few executions as it takes, and only the same bytes."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.processes import kill
from tests.wait import wait_until


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    """raw.txt -e1-> a.mid -e2-> b.mid -e3-> c.txt; of the .mid files only digests are kept."""
    clew = Project(tmp_path, **graph_in_turn)
    clew.write("raw.txt", "3\n1\n2\n")
    for line in ("sort raw.txt > a.mid", "cat a.mid a.mid > b.mid", "wc -l < b.mid > c.txt"):
        clew.shell(line, "--exclude", "*.mid")
    return clew


def remove(clew: Project, *names: str) -> None:
    for name in names:
        (clew.folder / name).unlink()


def ids(document: dict[str, Any]) -> list[str]:
    return [run["execution"] for run in document["runs"]]


def count(clew: Project) -> int:
    return len(clew.json("list"))


def test_what_is_stored_is_taken(clew: Project) -> None:
    remove(clew, "c.txt", "b.mid")
    done = clew.json("recreate", "c.txt")
    assert (ids(done), done["path"]) == ([], str(clew.folder / "c.txt"))
    assert (clew.folder / "c.txt").read_text() == "6\n"
    assert count(clew) == 3


def test_makers_run_in_order(clew: Project) -> None:
    remove(clew, "a.mid", "b.mid", "raw.txt")
    before = clew.json("recreate", "b.mid", "--dry-run")
    assert (ids(before), before["dry_run"]) == (["e1", "e2"], True)
    assert [run["makes"] for run in before["runs"]] == [
        [str(clew.folder / "a.mid")],
        [str(clew.folder / "b.mid")],
    ]
    assert not (clew.folder / "b.mid").exists()
    assert count(clew) == 3
    ran = clew("recreate", "e2:b.mid")
    assert ran.stdout.splitlines() == [
        "e1  sh -c 'sort raw.txt > a.mid'  makes a.mid",
        "e2  sh -c 'cat a.mid a.mid > b.mid'  makes b.mid",
    ]
    assert ran.stderr == "recreated b.mid (12 B) from 2 executions\n"
    assert (clew.folder / "b.mid").read_text() == "1\n2\n3\n1\n2\n3\n"
    assert not (clew.folder / "a.mid").exists()  # the others ran in isolation
    made = clew.json("list")[::-1][3:]
    assert [(e["kind"], e["parent"]) for e in made] == [("repetition", "e1"), ("repetition", "e2")]
    remove(clew, "b.mid")
    assert ids(clew.json("recreate", "b.mid")) == []  # from now on it is stored


def test_unchanged_files_on_disk_are_used(clew: Project) -> None:
    remove(clew, "b.mid")
    done = clew.json("recreate", "b.mid")
    assert (ids(done), done["taken"]) == (["e2"], [str(clew.folder / "a.mid")])
    assert (clew.folder / "b.mid").read_text() == "1\n2\n3\n1\n2\n3\n"


def test_what_was_changed_on_disk_is_made(clew: Project) -> None:
    remove(clew, "b.mid")
    clew.write("a.mid", "0\n0\n0\n")
    done = clew.json("recreate", "b.mid")
    assert (ids(done), done["taken"]) == (["e1", "e2"], [])
    assert (clew.folder / "a.mid").read_text() == "0\n0\n0\n"


def test_missing_content_is_named_before_the_start(clew: Project) -> None:
    clew.write("seed.mid", "1\n")
    clew.shell("cat seed.mid raw.txt > d.mid", "--exclude", "*.mid")
    remove(clew, "d.mid")
    clew.write("seed.mid", "2\n")
    code, message, hint = clew.error("recreate", "d.mid", status=5)
    assert code == "no-content"
    assert f"{clew.folder}/seed.mid (as e4 found it)" in message
    assert "restore these files" in hint
    assert count(clew) == 4
    code, message, _ = clew.error("recreate", "e4:seed.mid", status=5)
    assert code == "no-content" and "no execution made it" in message
    clew.write("seed.mid", "1\n")
    clew("recreate", "d.mid")
    assert (clew.folder / "d.mid").read_text() == "1\n3\n1\n2\n"


def test_the_fewest(clew: Project) -> None:
    """b.mid was once made in one go: that is the shorter way."""
    remove(clew, "a.mid", "b.mid")
    clew.shell("sort raw.txt > t; cat t t > b.mid", "--exclude", "*.mid", "--exclude", "*/t")
    remove(clew, "b.mid", "t")
    assert ids(clew.json("recreate", "e2:b.mid")) == ["e4"]
    assert (clew.folder / "b.mid").read_text() == "1\n2\n3\n1\n2\n3\n"


def test_an_execution_of_which_no_content_was_kept(clew: Project) -> None:
    clew.shell("cat raw.txt raw.txt > twice.txt", "--no-content")
    remove(clew, "twice.txt")
    assert ids(clew.json("recreate", "twice.txt")) == ["e4"]
    assert (clew.folder / "twice.txt").read_text() == "3\n1\n2\n3\n1\n2\n"


def test_damaged_bytes_are_made_again(clew: Project) -> None:
    remove(clew, "c.txt", "b.mid")
    shown = clew.json("show", "e3", "--detail")
    [file] = [f for f in shown["files"] if f["path"].endswith("c.txt")]
    spoil(clew, file["digest"])
    assert clew.error("restore", "e3:c.txt", status=3)[0] == "damaged"
    done = clew.json("recreate", "c.txt")
    assert ids(done) == ["e2", "e3"]
    assert (clew.folder / "c.txt").read_text() == "6\n"
    assert clew("cat", "e3:c.txt").stdout == "6\n"


def spoil(clew: Project, digest: str) -> None:
    """Overwrite the block that holds a content, in its pack."""
    from clew.store import Store
    from clew.store.types import parse_digest

    with Store(clew.folder / ".clew/store") as store:
        place = store._index.locate(parse_digest(digest) or b"")
    assert place is not None
    with (clew.folder / ".clew/store/packs" / place.pack).open("r+b") as pack:
        pack.seek(place.position)
        pack.write(bytes(place.stored))


def test_other_bytes_are_not_the_file(clew: Project) -> None:
    clew.shell("head -c 8 /dev/urandom > r.mid", "--exclude", "*.mid")
    clew.shell("cat r.mid r.mid > s.mid", "--exclude", "*.mid")
    remove(clew, "r.mid", "s.mid")
    done = clew.json("recreate", "s.mid", status=3)
    assert (done["verdict"], ids(done)) == ("different", ["e4", "e5"])
    [one] = done["differences"]
    assert (one["path"], one["kind"]) == (str(clew.folder / "r.mid"), "content")
    assert one["a"] != one["b"] and one["b"].startswith("blake3:")
    assert count(clew) == 6  # e5 was not run: there was nothing to run it with
    assert not (clew.folder / "s.mid").exists()
    ran = clew("recreate", "s.mid", status=3)
    assert "content   r.mid" in ran.stderr
    assert "nothing was written" in ran.stderr


def test_what_would_be_lost_stops_it_before_it_starts(clew: Project) -> None:
    remove(clew, "a.mid")
    path = clew.write("b.mid", "precious\n")
    code, message, hint = clew.error("recreate", "e2:b.mid", status=4)
    assert (code, "content is not stored" in message, "--to" in hint) == ("not-allowed", True, True)
    assert path.read_text() == "precious\n"
    assert count(clew) == 3
    clew("recreate", "e2:b.mid", "--to", "new/b.mid")
    assert (clew.folder / "new/b.mid").read_text() == "1\n2\n3\n1\n2\n3\n"
    clew("recreate", "e2:b.mid", "--yes")
    assert path.read_text() == "1\n2\n3\n1\n2\n3\n"


def test_streams(clew: Project) -> None:
    clew.shell("cat a.mid; echo end", "--no-content")
    clew("recreate", "e4:stdout", "--to", "said")
    assert (clew.folder / "said").read_text() == "1\n2\n3\nend\n"


def test_a_missing_secret_is_named_before_the_start(clew: Project) -> None:
    clew.environment["API_TOKEN"] = "s3cret-value"
    clew.shell(
        'test "$API_TOKEN" = s3cret-value && cat raw.txt raw.txt > k.mid', "--exclude", "*.mid"
    )
    remove(clew, "k.mid")
    del clew.environment["API_TOKEN"]
    assert "API_TOKEN" in clew.error("recreate", "k.mid", status=2)[1]
    assert count(clew) == 4
    clew.environment["API_TOKEN"] = "s3cret-value"
    clew("recreate", "k.mid")
    assert (clew.folder / "k.mid").read_text() == "3\n1\n2\n3\n1\n2\n"


def test_what_cannot_be_meant(clew: Project) -> None:
    assert clew.error("recreate", "e1", status=2)[0] == "usage"
    assert clew.error("recreate", "e9:x", status=5)[0] == "not-found"
    assert clew.error("recreate", "nothing.txt", status=5)[0] == "not-found"
    clew.write("raw.txt", "else\n")
    code, _, hint = clew.error("recreate", "raw.txt", status=5)
    assert code == "not-found" and "--list" in hint


def test_killed_midway_everything_is_as_before(clew: Project) -> None:
    clew.write("slow.sh", "cat raw.txt raw.txt > s.mid; echo > started; exec tail -f raw.txt\n")
    first = clew.start("exec", "--exclude", "*.mid", "--", "sh", "slow.sh")
    wait_until("its start", (clew.folder / "started").exists)
    first.terminate()
    first.communicate()
    remove(clew, "s.mid", "a.mid")
    listed = clew.json("list")[::-1]
    again = clew.start("recreate", "s.mid")
    spool = clew.folder / ".clew/spool"
    wait_until("its sandbox", lambda: any(spool.glob(".*/sandbox/upper/**/started")))
    kill(again)
    clew("exec", "--", "true")
    assert clew.json("list")[::-1][:-1] == listed
    assert not (clew.folder / "s.mid").exists()
    assert list(spool.iterdir()) == []


def test_files_are_taken_from_archives(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    clew.write("raw.mid", "1\n" * 100)
    shutil.make_archive(str(clew / "data"), "gztar", clew.folder, "raw.mid")
    clew.shell("cat data.tar.gz > /dev/null")
    clew.shell("wc -l < raw.mid > lines.mid", "--exclude", "*.mid")
    remove(clew, "raw.mid", "lines.mid", "data.tar.gz")
    ran = clew("recreate", "lines.mid")
    assert ran.stdout.splitlines() == [
        "unpack raw.mid from data.tar.gz",
        "e2  sh -c 'wc -l < raw.mid > lines.mid'  makes lines.mid",
    ]
    assert (clew / "lines.mid").read_text() == "100\n"
    done = clew.json("recreate", "raw.mid")  # it is stored now
    assert (ids(done), done["unpacked"]) == ([], [])


def test_outputs_are_copied_to_where_they_were_moved(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    clew.shell("seq 100 > got.mid", "--exclude", "*.mid")
    (clew / "got.mid").rename(clew / "moved.mid")
    clew.shell("wc -l < moved.mid > lines.mid", "--exclude", "*.mid")
    remove(clew, "moved.mid", "lines.mid")
    [make, count_lines] = clew.json("recreate", "lines.mid", "--dry-run")["runs"]
    assert make["copies"] == [{"from": str(clew / "got.mid"), "to": str(clew / "moved.mid")}]
    assert count_lines["copies"] == []
    ran = clew("recreate", "moved.mid")
    assert ran.stdout.splitlines() == [
        "e1  sh -c 'seq 100 > got.mid'  makes got.mid",
        "    then copy got.mid to moved.mid, which has the same bytes",
    ]
    assert (clew / "moved.mid").read_text().endswith("100\n")
    clew("recreate", "lines.mid")
    assert (clew / "lines.mid").read_text() == "100\n"

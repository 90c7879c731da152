"""Checkouts through a server: laid out and looked at here, run there, and told as in a folder."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.local_and_remote import LocalAndRemote, start_local_and_remote


@pytest.fixture
def both(tmp_path: Path) -> Iterator[LocalAndRemote]:
    """e2 sorts raw.txt by sort.sh, and says so."""
    with start_local_and_remote(tmp_path) as found:
        found.write("raw.txt", "3\n1\n2\n")
        found.write("sort.sh", "sort raw.txt > sorted.txt\necho sorted\n")
        found.sh(". ./sort.sh", "--name", "sorting")
        yield found


def test_change_and_commit(both: LocalAndRemote) -> None:
    both.run_both("checkout", "e2", "work")
    assert both.read("work/raw.txt") == "3\n1\n2\n"
    both.run_both("status", "work")
    both.run_both("status", within="work")
    both.run_both("commit", "work")  # nothing was changed: nothing runs
    both.write("work/sort.sh", "sort -r raw.txt > sorted.txt\necho the other way\n")
    both.write("work/more.txt", "added\n")
    changed = both.run_both("status", "work", "--json")
    assert [one["path"] for one in changed["modified"]] == ["sort.sh"]
    assert both.run_both("commit", "-m", "backwards", within="work") == "the other way\n"
    both.run_both("status", "work")  # one of e3 now, and clean
    assert both.remote_json("show", "e3")["parent"] == "e2"
    assert both.run_remote("cat", "e3:sorted.txt").stdout == b"3\n2\n1\n"
    (note,) = both.remote_json("note", "e3")["notes"]
    assert (note["key"], note["value"]) == ("message", "backwards")
    both.write("work/sort.sh", "sort raw.txt > sorted.txt\n")
    both.run_both("commit", "work", "--json")
    both.run_both("list", "--tree")


def test_a_commit_that_fails_leaves_the_checkout(both: LocalAndRemote) -> None:
    both.run_both("checkout", "sorting")
    both.write("sorting/sort.sh", "echo no >&2; exit 7\n")
    both.run_both("commit", "sorting", status=1)
    both.run_both("status", "sorting")


def test_a_checkout_is_switched_only_if_nothing_is_lost(both: LocalAndRemote) -> None:
    both.run_both("checkout", "e2", "work", "--json")
    both.run_both("checkout", "e2", "work")
    both.write("work/raw.txt", "9\n")
    both.run_both("checkout", "e2", "work", status=4)
    both.write("full/of.txt", "something else\n")
    both.run_both("checkout", "e2", "full", status=4)
    both.run_both("checkout", "e2", "work/within", status=4)
    both.run_both("checkout", "e77", status=5)


def test_files_that_no_execution_read_are_kept(both: LocalAndRemote) -> None:
    """It was committed, and so is no change; but no execution has it."""
    both.run_both("checkout", "e2", "work")
    both.write("work/sort.sh", "sort -u raw.txt > sorted.txt\n")
    both.write("work/unread.txt", "nobody reads this\n")
    both.run_both("commit", "work")
    both.run_both("checkout", "e2", "work", status=4)
    both.remove("work/unread.txt")
    both.run_both("checkout", "e2", "work")


def test_names_that_are_not_utf8_and_files_outside(both: LocalAndRemote) -> None:
    name = os.fsdecode(b"odd-\xff")
    both.write(name, "odd\n")
    both.write("../outside.txt", "outside\n")
    both.sh("mkdir -p in; cd in; cat ../odd* ../../outside.txt > all.txt")
    both.run_both("checkout", "e3", "work")
    both.write(f"work/{name}", "odder\n")
    both.run_both("status", "work")
    both.run_both("commit", "work")
    assert both.run_remote("cat", "e4:in/all.txt").stdout.startswith(b"odder\n")


def test_the_client_needs_no_project(both: LocalAndRemote, tmp_path: Path) -> None:
    """Nor is one made."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert both.run_remote("checkout", "e2", "work", cwd=elsewhere).returncode == 0
    (elsewhere / "work/raw.txt").write_text("5\n4\n")
    assert both.remote_json("status", "work", cwd=elsewhere)["modified"][0]["path"] == "raw.txt"
    assert both.run_remote("commit", "work", cwd=elsewhere).stdout == b"sorted\n"
    assert sorted(path.name for path in elsewhere.iterdir()) == ["work"]
    assert both.run_remote("cat", "e3:sorted.txt").stdout == b"4\n5\n"


def test_a_checkout_of_another_project_is_refused(both: LocalAndRemote) -> None:
    """One of a folder's own project is none of the server's."""
    assert both.local.command("checkout", "e2", both.remote_folder / "own").returncode == 0
    refused = both.remote_json("commit", "own")["error"]
    assert refused["code"] == "not-found"
    assert "checkout of another project" in refused["message"]
    assert "CLEW_SERVER" in refused["hint"]


def test_only_missing_content_is_transferred(both: LocalAndRemote) -> None:
    """A checkout of what was recorded here fetches nothing; a commit sends what was changed."""
    large = "".join(f"{number * number}\n" for number in range(300_000))
    both.write("raw.txt", large)
    both.sh(". ./sort.sh")
    both.run_both("checkout", "e3", "work")
    assert both.count_requests("/api/v1/content/chunks") == 0
    (both.remote_folder / "work/raw.txt").write_text("0\n" + large)
    before = both.metric("clew_ingest_bytes_total")
    assert both.run_remote("commit", "work").returncode == 0
    assert 0 < both.metric("clew_ingest_bytes_total") - before < len(large) / 10


def test_content_is_fetched_and_verified(both: LocalAndRemote, tmp_path: Path) -> None:
    """In many packs, into a folder that has none of it."""
    numbers = random.Random(5)
    data = [numbers.randbytes(9 << 20), b"", b"small\n", bytes(3 << 20)]
    for number, part in enumerate(data):
        (both.remote_folder / f"part{number}").write_bytes(part)
    assert both.run_remote("exec", "--", "sh", "-c", "cat part? part? | wc -c").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert both.run_remote("checkout", "e3", "work", cwd=elsewhere).returncode == 0
    assert both.count_requests("/api/v1/content/chunks") > 0
    assert [(elsewhere / f"work/part{n}").read_bytes() for n in range(len(data))] == data


def test_the_status_of_the_servers_project(both: LocalAndRemote) -> None:
    """Files are compared on the client's machine, the store is the server's."""
    both.write("raw.txt", "4\n1\n2\n")
    both.remove("sorted.txt")
    told = both.run_both("status", "--json=files,executions")
    assert told["files"] == {
        "checked": 3,
        "modified": [{"path": "HERE/raw.txt", "execution": "e2"}],
        "missing": [{"path": "HERE/sorted.txt", "execution": "e2"}],
        "unchecked": [],
        "unchecked_count": 0,
    }
    status = both.remote_json("status")
    assert (status["project"], status["unsent"]) == (str(both.served.folder), [])

"""Executions from a server to a remote and back, by way of whoever asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.local_and_remote import LocalAndRemote, start_local_and_remote
from tests.local.server import run_server


@pytest.fixture
def both(tmp_path: Path) -> Iterator[LocalAndRemote]:
    """e2 and e3, each of three lines; e3 is called second and has a note."""
    with start_local_and_remote(tmp_path) as found:
        found.write("raw.txt", "3\n1\n2\n")
        found.sh("sort raw.txt > sorted.txt")
        found.sh("wc -l < sorted.txt > count.txt", "--name", "second")
        found.run_both("note", "second", "verdict=good", "--json")
        yield found


def uids(found: list[dict[str, Any]]) -> dict[str, str]:
    return {one["id"]: one["uid"] for one in found}


def test_push_prints_the_same(both: LocalAndRemote) -> None:
    both.run_both("push", "remote", "e2")
    assert "pushed" not in both.run_both("push", "remote", "e77", status=5)
    both.run_both("push", "remote")
    both.run_both("push", "remote")
    both.run_both("pull", "remote", "--list")
    both.run_both("pull", "remote")
    both.run_both("pull", "nowhere", status=5)
    both.run_both("pull", "remote", "e77", status=5)
    (both.remote_folder / "full").mkdir()
    (both.remote_folder / "full/of.txt").write_text("something else\n")
    assert both.run_remote("push", "full").returncode == 4


def test_a_push_from_a_server_is_complete(both: LocalAndRemote, tmp_path: Path) -> None:
    """Another project has all of it: files, notes, names."""
    assert both.run_remote("push", "remote").returncode == 0
    other = Project(tmp_path / "other")
    assert other.command("pull", both.remote_folder / "remote").returncode == 0
    pulled = json.loads(other.command("list", "--json").stdout)
    assert set(uids(pulled).values()) == set(uids(both.remote_json("list")).values())
    assert json.loads(other.command("fsck", "--json").stdout)["ok"]
    assert other.command("cat", "second:count.txt").stdout == b"3\n"
    (note,) = json.loads(other.command("note", "second", "--json").stdout)["notes"]
    assert (note["key"], note["value"]) == ("verdict", "good")
    ran = other.command("repeat", "second")
    assert ran.returncode == 0, ran.stderr


def test_pull_brings_it_to_the_server(both: LocalAndRemote, tmp_path: Path) -> None:
    """From a remote that only whoever asks can see, into a server that has none of it."""
    assert both.local.command("push", tmp_path / "remote").returncode == 0
    empty = Project(tmp_path / "empty")
    with run_server(empty) as server:
        through = both.environment | server.variables
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        where: dict[str, Any] = {"env": through, "cwd": elsewhere}
        one = both.run_remote("pull", "../remote", "second", **where)
        assert one.stderr.startswith(b"e1  sh -c 'wc -l < sorted.txt > count.txt'\npulled 1 exec")
        (noted,) = both.remote_json("note", "e1", **where)["notes"]
        assert noted["key"] == "verdict"
        assert both.run_remote("pull", "../remote", **where).returncode == 0
        assert both.run_remote("pull", "../remote", **where).stderr == b"nothing to pull\n"
        listed = both.remote_json("pull", "../remote", "--list", **where)
        assert {one["uid"]: one["here"] for one in listed} == {
            uid: name for name, uid in uids(both.remote_json("list", **where)).items()
        }
        assert list(elsewhere.iterdir()) == []  # nothing is left on the way
    assert json.loads(empty.command("fsck", "--json").stdout)["ok"]
    assert empty.command("cat", "second:count.txt").stdout == b"3\n"
    repeated = empty.command("repeat", "second")
    assert repeated.returncode == 0, repeated.stderr


def test_notes_that_were_made_later_travel_too(both: LocalAndRemote, tmp_path: Path) -> None:
    assert both.run_remote("push", "remote").returncode == 0
    other = Project(tmp_path / "other")
    assert other.command("pull", both.remote_folder / "remote").returncode == 0
    assert other.command("note", "second", "later=yes").returncode == 0
    assert other.command("push", both.remote_folder / "remote").returncode == 0
    assert both.run_remote("pull", "remote").stderr == b"nothing to pull\n"
    assert [note["key"] for note in both.remote_json("note", "second")["notes"]] == [
        "verdict",
        "later",
    ]


def test_only_what_is_missing_travels(both: LocalAndRemote) -> None:
    """The remote has all but one line of it; so has the server, when it is pulled back."""
    large = "".join(f"{number * number}\n" for number in range(300_000))
    both.write("large.txt", large)
    both.sh("wc -c < large.txt")
    elsewhere = both.place / "elsewhere"
    elsewhere.mkdir()  # where nothing of it is yet
    first = both.remote_json("push", "../remote", "e4", cwd=elsewhere)["bytes"]
    both.write("large.txt", f"{large}the end\n")
    both.sh("wc -c < large.txt")
    second = both.remote_json("push", "../remote", "e5", cwd=elsewhere)["bytes"]
    assert second < first / 4
    asked = both.count_requests("/api/v1/content/chunks")
    assert both.remote_json("push", "../remote", "e5", cwd=elsewhere)["bytes"] == 0
    assert both.count_requests("/api/v1/content/chunks") == asked

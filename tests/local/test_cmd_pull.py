"""`clew pull`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver import EXECUTION, Project
from tests.local.remotes import (
    REMOTES,
    Remote,
    directory_remote,
    executions_by_uid,
    project_with_remote,
    verified_executions,
    write_random_file,
)
from tests.local.test_cmd_push import limited
from tests.unit.prov.execution_builder import ExecutionBuilder


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    with directory_remote(tmp_path) as made:
        yield made


def record(place: Path, remote: Remote) -> Project:
    """A project whose two executions, `clean` and another, were pushed."""
    clew = project_with_remote(place, remote)
    clew.write("data/raw.csv", "P1,1\nP2,\nP3,3\n")
    clew.shell("grep -v ',$' data/raw.csv > data/clean.csv", "--name", "clean")
    clew.shell("wc -l < data/clean.csv > model.txt")
    clew("push", remote.url)
    return clew


@pytest.fixture
def clew(tmp_path: Path, remote: Remote) -> Project:
    return record(tmp_path / "here", remote)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Remote]:
    """A project and where it was pushed, for those who only read: made once."""
    place = tmp_path_factory.mktemp("pushed")
    with directory_remote(place) as remote:
        return record(place / "here", remote), remote


@pytest.fixture
def other(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return Project(tmp_path / "there", **graph_in_turn)


def test_pull_transfers_the_whole_record(pushed: tuple[Project, Remote], other: Project) -> None:
    clew, remote = pushed
    done = other.json("pull", remote.url)
    assert set(done) == {"url", "executions", "bytes", "remarks"}
    assert [found["id"] for found in done["executions"]] == ["e1", "e2"]
    assert set(done["executions"][0]) >= EXECUTION
    assert executions_by_uid(other) == executions_by_uid(clew)
    assert other("cat", f"e2:{clew.folder}/model.txt").stdout.strip() == "2"
    lineage = other.json("trace", f"e2:{clew.folder}/model.txt")
    mine = clew.json("trace", "e2:model.txt")
    assert {n["id"] for n in lineage["nodes"]} == {n["id"] for n in mine["nodes"]}
    verified_executions(other)
    assert other.json("gc", "--dry-run")["files"] == 0


def test_what_was_made_elsewhere_is_shown_as_such(
    pushed: tuple[Project, Remote], other: Project
) -> None:
    clew, remote = pushed
    other("pull", remote.url)
    other.shell("true")
    found = [execution["made_elsewhere"] for execution in other.json("list")[::-1]]
    assert found == [True, True, False]
    assert [e["made_elsewhere"] for e in clew.json("list")] == [False, False]
    assert other("list").stdout.count("(made elsewhere)") == 2
    assert "made elsewhere" in other("show", "e1").stdout
    assert other.json("show", "e1")["made_elsewhere"]
    assert not other.json("repeat", "e3")["execution"]["made_elsewhere"]
    assert other.json("repeat", "e1")["execution"]["made_elsewhere"]


def test_what_was_made_elsewhere_is_restored_below_the_current_folder(
    pushed: tuple[Project, Remote], other: Project, tmp_path: Path
) -> None:
    clew, remote = pushed
    other("pull", remote.url)
    shown = clew.json("show", "e1", "--detail")
    own = next(file for file in shown["files"] if file["path"].startswith(str(clew.folder)))
    path = Path(own["path"])
    kept = path.read_bytes()
    path.write_bytes(b"mine")
    relative = path.relative_to(clew.folder)
    done = other.json("restore", f"e1:{path}")
    assert done["path"] == str(other.folder / relative)
    assert (path.read_bytes(), (other.folder / relative).read_bytes()) == (b"mine", kept)
    other("restore", f"e1:{path}", "--to", str(path), "--yes")
    assert path.read_bytes() == kept


def test_pulled_processes_are_reused(tmp_path: Path, remote: Remote, other: Project) -> None:
    """The memo comes along: an incremental repeat here reuses what ran there."""
    clew = project_with_remote(tmp_path / "here", remote)
    clew.write("raw", "b\na\n")
    clew.shell("sort raw > sorted\nwc -l < sorted > count")
    clew("push", remote.url)
    other("pull", remote.url)
    again = other.json("repeat", "e1", "--incremental")
    assert (again["verdict"], again["ran"]) == ("identical", [])
    assert again["reused"]
    assert all(one["from"].startswith("e1.") for one in again["reused"])


def test_twice_changes_nothing(clew: Project, other: Project, remote: Remote) -> None:
    clew("note", "e1", "good=yes")
    clew("push", remote.url)
    other("pull", remote.url)
    before = verified_executions(other), other.json("note", "e1")
    assert "nothing to pull" in other("pull", remote.url).stderr
    assert other.json("pull", remote.url, "e1", "clean")["bytes"] < 100_000  # events, no content
    assert (verified_executions(other), other.json("note", "e1")) == before


def test_pulled_executions_are_renumbered_by_start(
    pushed: tuple[Project, Remote], other: Project
) -> None:
    clew, remote = pushed
    other.shell("true", "--name", "mine")
    other("pull", remote.url, "e2")
    other("pull", remote.url)
    assert [(e["id"], e["name"], e["command"][-1][:4]) for e in other.json("list")[::-1]] == [
        ("e1", "mine", "true"),
        ("e2", None, "wc -"),
        ("e3", "clean", "grep"),
    ]
    uids = {found["uid"] for found in clew.json("list")}
    assert {found["uid"] for found in other.json("list")} > uids


def test_what_is_there_is_listed(pushed: tuple[Project, Remote], other: Project) -> None:
    _, remote = pushed
    found = other.json("pull", remote.url, "--list")
    assert [(e["id"], e["name"], e["here"]) for e in found] == [
        ("e1", "clean", None),
        ("e2", None, None),
    ]
    other.shell("true")
    other("pull", remote.url, "clean")
    lines = other("pull", remote.url, "--list").stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["uid", "id", "name"]
    uid = found[0]["uid"]
    row = lines[1].split("\t")
    assert (row[0], row[1], row[2], row[5]) == (uid[:8], "e1", "clean", "e2")
    assert len(other.json("list")) == 2
    assert other.error("pull", remote.url, "--list", "e1", status=2)[0] == "usage"


def test_by_uid_name_or_the_pusher_s_number(pushed: tuple[Project, Remote], other: Project) -> None:
    clew, remote = pushed
    first, second = (found["uid"] for found in clew.json("list")[::-1])
    assert other.json("pull", remote.url, second[:6])["executions"][0]["uid"] == second
    assert other.json("pull", remote.url, first)["executions"][0]["uid"] == first
    code, message, hint = other.error("pull", remote.url, "e9", status=5)
    assert (code, message) == ("not-found", f"there is no execution e9 at {remote.url}")
    assert hint == f"clew pull {remote.url} --list"


def test_a_number_that_two_pushers_have(
    tmp_path: Path, clew: Project, other: Project, remote: Remote
) -> None:
    third = project_with_remote(tmp_path / "third", remote)
    own = third.shell("echo third", "--name", "clean")
    third("push", remote.url)
    for text in ("e1", "clean"):
        code, message, _ = other.error("pull", remote.url, text, status=2)
        assert code == "usage"
        assert own["uid"][:8] in message
    assert other.json("list") == []
    said = other("pull", remote.url).stderr
    assert "e3: the name 'clean' is already used here and was dropped" in said
    assert [found["name"] for found in other.json("list")[::-1]] == ["clean", None, None]


def test_notes_are_pulled_also_later(clew: Project, other: Project, remote: Remote) -> None:
    clew("note", "e1", "verdict=good")
    clew("note", "e1.p1", "shell=yes")
    clew("source", "data/raw.csv", "https://example.org/raw.csv")
    clew("push", remote.url)
    other("pull", remote.url)
    place = f"e1:{clew.folder}/data/raw.csv"
    assert other("note", "e1").stdout == "verdict=good\n"
    assert other("note", "e1.p1").stdout == "shell=yes\n"
    assert other("note", place).stdout == "source=https://example.org/raw.csv\n"
    other("note", "e2", "seen=there")
    assert [e["id"] for e in other.json("push", remote.url)["executions"]] == ["e2"]
    clew("note", "e2", "seen=here")
    assert clew.json("pull", remote.url)["executions"] == []
    assert clew("note", "e2").stdout == "seen=there\nseen=here\n"
    clew("push", remote.url)
    other("pull", remote.url)
    assert other("note", "e2").stdout == "seen=there\nseen=here\n"


def test_families_stay_together(tmp_path: Path, other: Project, remote: Remote) -> None:
    """By uid: numbers differ here, and the child may come before its parent."""
    clew = project_with_remote(tmp_path / "here", remote)
    with clew.opened() as mine:
        parent = ExecutionBuilder("a", at=1000).end()
        child = ExecutionBuilder(
            "b", at=2000, parent=parent.uid, facets={"kind": "repetition", "collection": parent.uid}
        ).end()
        mine.graph.fold([*parent.events, *child.events])
    clew("push", remote.url)
    other.shell("true")
    other("pull", remote.url, "e2")
    assert [e["parent"] for e in other.json("list")] == [None, None]
    other("pull", remote.url)
    found = {e["id"]: e for e in other.json("list")}
    assert found["e2"]["uid"] == child.uid
    assert (found["e2"]["parent"], found["e2"]["collection"]) == ("e3", "e3")
    assert found["e2"]["kind"] == "repetition"


def test_one_that_was_broken_is_broken_there(
    tmp_path: Path, clew: Project, other: Project, remote: Remote
) -> None:
    running = clew.start("exec", "--", "sh", "-c", "echo ready; sleep 1000")
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.kill()
    running.communicate()
    clew("push", remote.url)
    other("pull", remote.url)
    assert [e["state"] for e in other.json("list")[::-1]] == ["done", "done", "broken"]
    assert executions_by_uid(other) == executions_by_uid(clew)


def test_through_s3(tmp_path: Path) -> None:
    with REMOTES["s3"](tmp_path) as remote:
        clew, other = (project_with_remote(tmp_path / name, remote) for name in ("here", "there"))
        write_random_file(clew, "in", 20 << 20)
        clew.shell("cat in > out", "--name", "copy")
        assert other.error("pull", remote.url, status=5)[0] == "not-found"
        clew("push", remote.url)
        assert [e["name"] for e in other.json("pull", remote.url, "--list")] == ["copy"]
        assert other.json("pull", remote.url)["bytes"] > 20 << 20
        assert other.json("pull", remote.url)["bytes"] == 0
        assert verified_executions(other)[0] == executions_by_uid(clew)


def test_from_python(pushed: tuple[Project, Remote], other: Project) -> None:
    _, remote = pushed
    program = """
import sys, clew
told = []
with clew.open() as project:
    assert [e["name"] for e in project.shared(sys.argv[1])] == ["clean", None]
    done = project.pull(sys.argv[1], ["clean"], progress=lambda *far: told.append(far))
    assert [e.name for e in done.executions] == ["clean"] and done.bytes > 0
    assert [e.id for e in project.pull(sys.argv[1]).executions] == ["e2"]
    assert project.executions()[0].files
assert told[0][0] == 0 and told[-1][0] == told[-1][1] > 0
"""
    words = [sys.executable, "-c", program, remote.url]
    subprocess.run(words, cwd=other.folder, env=other.environment, check=True)


def test_no_room_here(tmp_path: Path, other: Project, remote: Remote) -> None:
    clew = project_with_remote(tmp_path / "here", remote)
    write_random_file(clew, "in", 3_000_000)
    clew.shell("cat in > /dev/null")
    clew("push", remote.url)
    before = verified_executions(other)
    ran = limited(other, "pull", remote.url, "--json", blocks=4000)
    assert ran.returncode == 1, ran.stderr
    assert json.loads(ran.stdout)["error"]["code"] == "disk-full"
    assert verified_executions(other) == before
    other("pull", remote.url)
    assert verified_executions(other)[0] == executions_by_uid(clew)


def test_no_remote(other: Project, tmp_path: Path) -> None:
    url = str(tmp_path / "nothing")
    code, _, hint = other.error("pull", url, status=5)
    assert (code, hint) == ("not-found", f"clew push {url} makes one")
    assert other.error("pull", url, "--list", status=5)[0] == "not-found"
    assert not Path(url).exists()

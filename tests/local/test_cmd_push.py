"""`clew push`."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver import EXECUTION, Project
from tests.local.processes import kill
from tests.local.remotes import (
    KEYS,
    REMOTES,
    Remote,
    directory_remote,
    executions_by_uid,
    project_with_remote,
    verified_executions,
    wait_for_packs,
    write_random_file,
)
from tests.local.test_docs import at_a_terminal

import clew as interface


@pytest.fixture(params=REMOTES)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remote]:
    with REMOTES[request.param](tmp_path) as made:
        yield made


@pytest.fixture
def clew(tmp_path: Path, remote: Remote) -> Project:
    return project_with_remote(tmp_path / "here", remote)


def elsewhere(tmp_path: Path, remote: Remote) -> Project:
    return project_with_remote(tmp_path / "there", remote)


def test_push_sends_what_is_missing(clew: Project, remote: Remote, tmp_path: Path) -> None:
    clew.write("in", "some data\n")
    clew.shell("sort in > out", "--name", "sorting")
    clew.shell("wc -l < out > count")
    done = clew.json("push", remote.url)
    assert set(done) == {"url", "executions", "bytes", "remarks"}
    assert [found["id"] for found in done["executions"]] == ["e1", "e2"]
    assert set(done["executions"][0]) >= EXECUTION
    assert done["bytes"] == remote.size() - remote.size(["format"])
    there = remote.objects()
    assert "nothing to push" in clew("push", remote.url).stderr
    assert clew.json("push", remote.url)["bytes"] == 0
    assert remote.objects() == there
    clew.shell("cat count")
    said = clew("push", remote.url)
    assert said.stdout == ""
    assert said.stderr.splitlines()[0] == "e3  sh -c 'cat count'"
    assert "pushed 1 execution" in said.stderr
    other = elsewhere(tmp_path, remote)
    other("pull", remote.url)
    assert executions_by_uid(other) == executions_by_uid(clew)


def test_what_is_shared_does_not_travel_again(clew: Project, remote: Remote) -> None:
    for number in range(20):
        write_random_file(clew, f"in{number}", 500_000, number)
    clew.shell("cat in* > /dev/null")
    first = clew.json("push", remote.url)["bytes"]
    write_random_file(clew, "in7", 500_000, 99)  # 5 % are new
    clew.shell("cat in* > /dev/null")
    second = clew.json("push", remote.url)["bytes"]
    assert second <= 0.07 * first


def test_only_those_that_are_named(clew: Project, remote: Remote, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        clew.shell(f"echo {number} > out{number}", "--name", f"n{number}")
    done = clew.json("push", remote.url, "e1", "n3", "e3")
    assert [found["name"] for found in done["executions"]] == ["n1", "n3"]
    listed = elsewhere(tmp_path, remote).json("pull", remote.url, "--list")
    assert [found["id"] for found in listed] == ["e1", "e3"]
    before = remote.objects()
    assert clew.error("push", remote.url, "e1", "e9", status=5)[:2] == (
        "not-found",
        "no execution e9",
    )
    assert remote.objects() == before


def test_one_that_runs_is_left_out(clew: Project, remote: Remote) -> None:
    clew.shell("true")
    running = clew.start("exec", "--", "sh", "-c", "echo ready; read line")
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    done = clew.json("push", remote.url)
    assert [found["id"] for found in done["executions"]] == ["e1"]
    assert done["remarks"] == ["e2 is still running and was left out"]
    assert clew.error("push", remote.url, "e2", status=1)[0] == "busy"
    running.communicate("go\n")
    assert [found["id"] for found in clew.json("push", remote.url)["executions"]] == ["e2"]


def test_no_secret_travels(clew: Project, remote: Remote) -> None:
    """Neither one of the recorded command, nor the keys of the remote itself."""
    secret = "correct-horse-battery"
    clew.environment |= {"DB_PASSWORD": secret, "HARMLESS": "for-everyone"}
    clew.shell("echo $DB_PASSWORD; /bin/echo --password=$DB_PASSWORD $HARMLESS > /dev/null")
    clew("push", remote.url)
    told = b"".join(data for _, data in remote.bytes())
    assert b"for-everyone" in told
    assert secret.encode() not in told
    assert KEYS["AWS_SECRET_ACCESS_KEY"].encode() not in told


def test_content_that_only_has_a_digest(clew: Project, remote: Remote, tmp_path: Path) -> None:
    clew.write("in", "kept to myself\n")
    clew.shell("cat in > out; ls > names", "--no-content")
    clew("push", remote.url)
    assert not any(b"kept to myself" in data for _, data in remote.bytes())
    other = elsewhere(tmp_path, remote)
    other("pull", remote.url)
    assert executions_by_uid(other) == executions_by_uid(clew)
    path = clew.folder / "in"
    assert other.error("cat", f"e1:{path}", status=5)[0] == "no-content"


def test_from_python(clew: Project, remote: Remote, tmp_path: Path) -> None:
    clew.shell("echo out > out")
    program = """
import sys, clew
told = []
with clew.open() as project:
    done = project.push(sys.argv[1], progress=lambda done, total: told.append((done, total)))
assert [e.id for e in done.executions] == ["e1"] and done.bytes > 0 and not done.remarks
assert told[-1][0] == told[-1][1] > 0
"""
    subprocess.run(
        [sys.executable, "-c", program, remote.url],
        cwd=clew.folder,
        env=clew.environment,
        check=True,
    )
    assert interface.Transfer.__doc__


def test_a_progress_bar_on_terminals_only(tmp_path: Path) -> None:
    with directory_remote(tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote)
        write_random_file(clew, "in", 300_000)
        clew.shell("cat in > out")
        line = f"cd {clew.folder}; {sys.executable} -m clew push"
        seen = at_a_terminal(f"{line} {remote.url}", clew.environment)
        assert "━" in seen
        assert "pushed 1 execution" in seen.rpartition("\r")[2]
        assert "━" not in clew("push", f"{remote.url}2").stderr


def test_two_projects_push_at_the_same_time(tmp_path: Path, remote: Remote) -> None:
    projects = [project_with_remote(tmp_path / name, remote) for name in "abc"]
    for number, clew in enumerate(projects):
        write_random_file(clew, "same", 2_000_000)
        write_random_file(clew, "own", 100_000, number)
        clew.shell("cat same own > out")
    started = [clew.start("push", remote.url) for clew in projects]
    for process in started:
        _, said = process.communicate()
        assert process.returncode == 0, said
    other = elsewhere(tmp_path, remote)
    other("pull", remote.url)
    expected = {uid: shown for clew in projects for uid, shown in executions_by_uid(clew).items()}
    assert executions_by_uid(other) == expected
    verified_executions(other)


# -- bad luck


def test_one_that_is_forgotten_meanwhile(tmp_path: Path) -> None:
    """Half of a record must not pass for all of it."""
    with directory_remote(tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote)
        write_random_file(clew, "in", 300_000)
        clew.shell("cat in > out")
        with clew.opened() as opened, clew.opened() as other:

            def forget(done: int, total: int) -> None:
                if not done:
                    other.remove(["e1"])

            with pytest.raises(interface.ClewError, match="no execution"):
                opened.push(remote.url, progress=forget)
        assert not any(name.startswith("executions/") for name in remote.objects())


def test_a_killed_push_resumes(clew: Project, remote: Remote, tmp_path: Path) -> None:
    write_random_file(clew, "in", 80 << 20)
    clew.shell("cat in > /dev/null")
    pushing = clew.start("push", remote.url)
    wait_for_packs(remote, 2)
    kill(pushing)
    arrived = remote.arrived()
    assert not any(name.startswith("executions/") for name in remote.objects())
    other = elsewhere(tmp_path, remote)
    assert other.json("pull", remote.url)["executions"] == []
    kept = remote.size(arrived)
    assert clew.json("push", remote.url)["bytes"] == remote.size() - kept
    assert arrived.items() <= remote.objects().items()  # not put again
    assert list((remote.path / "packs").glob(".*")) == []
    other("pull", remote.url)
    assert executions_by_uid(other) == executions_by_uid(clew)
    verified_executions(other)


def test_a_remote_that_vanishes_midway(clew: Project, remote: Remote, tmp_path: Path) -> None:
    write_random_file(clew, "in", 80 << 20)
    clew.shell("cat in > /dev/null")
    before = executions_by_uid(clew)
    pushing = clew.start("push", remote.url)
    wait_for_packs(remote, 1)
    pushing.send_signal(signal.SIGSTOP)
    aside = tmp_path / "aside"
    if remote.server is not None:
        remote.server.stop()
    else:
        remote.path.rename(aside)
    pushing.send_signal(signal.SIGCONT)
    _, said = pushing.communicate()
    assert pushing.returncode == (1 if remote.server else 5), said
    assert f"{remote.url}" in said.splitlines()[-2]
    assert "what has arrived is not sent again" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert executions_by_uid(clew) == before
    if remote.server is not None:
        code = clew.error("push", remote.url, status=1)[0]
        assert code == "unreachable"
        remote.server.start()
    else:
        assert not remote.path.exists()
        aside.rename(remote.path)
    arrived = remote.size(remote.arrived())
    assert clew.json("push", remote.url)["bytes"] == remote.size() - arrived
    verified_executions(clew)


def limited(clew: Project, *words: str, blocks: int) -> subprocess.CompletedProcess[str]:
    """With no file larger than so many blocks of 512 bytes: as good as a full disk."""
    line = f'ulimit -f {blocks}; exec "$@"'
    return subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "clew", *words],
        cwd=clew.folder,
        env=clew.environment,
        capture_output=True,
        text=True,
    )


def test_a_remote_that_is_full(tmp_path: Path) -> None:
    with directory_remote(tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote)
        write_random_file(clew, "in", 3_000_000)
        clew.shell("cat in > /dev/null")
        ran = limited(clew, "push", remote.url, "--json", blocks=4000)
        assert ran.returncode == 1, ran.stderr
        told = json.loads(ran.stdout)["error"]
        assert told["code"] == "disk-full"
        assert "not sent again" in told["hint"]
        assert set(remote.objects()) == {"format"}
        assert list(remote.path.glob("*/.*")) == []
        clew("push", remote.url)


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, 4, "not-allowed"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, 1, "unreachable"),
    ],
)
def test_a_bucket_that_cannot_be_used(
    tmp_path: Path, change: dict[str, str], status: int, code: str
) -> None:
    with REMOTES["s3"](tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote, **change)
        clew.shell("true")
        found, message, hint = clew.error("push", remote.url, status=status)
        assert found == code
        assert remote.url in message
        assert "AWS_" in hint
        assert KEYS["AWS_SECRET_ACCESS_KEY"] not in message


def test_a_missing_bucket(tmp_path: Path) -> None:
    with REMOTES["s3"](tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote)
        clew.shell("true")
        assert clew.error("push", "s3://nowhere/x", status=5)[0] == "not-found"


def test_a_directory_that_is_not_a_remote(tmp_path: Path) -> None:
    with directory_remote(tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote)
        clew.shell("true")
        home = tmp_path / "home"
        home.mkdir()
        (home / "letters").touch()
        assert clew.error("push", str(home), status=4)[0] == "not-allowed"
        assert os.listdir(home) == ["letters"]
        assert clew.error("push", "ftp://somewhere/x", status=2)[0] == "usage"


def test_a_record_whose_bytes_are_gone_is_not_pushed(tmp_path: Path) -> None:
    with directory_remote(tmp_path) as remote:
        clew = project_with_remote(tmp_path / "here", remote)
        clew.shell("true")
        store = clew.folder / ".clew" / "store"
        shutil.rmtree(store / "packs")
        (store / "packs").mkdir()
        for file in store.glob("index.db*"):
            file.unlink()
        code, _, hint = clew.error("push", remote.url, status=5)
        assert (code, hint) == ("no-content", "clew fsck")
        assert set(remote.objects()) == {"format"}

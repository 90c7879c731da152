"""kill -9 of a push and of a pull at many moments, and sweeps beside them.

Whenever it comes: an execution is there whole or not at all, on either side, and the next try
brings the rest.
"""

import random
import signal
import time
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.processes import kill
from tests.local.remotes import (
    Remote,
    directory_remote,
    executions_by_uid,
    project_with_remote,
    verified_executions,
    wait_for_packs,
    write_random_file,
)
from tests.wait import wait_until


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    with directory_remote(tmp_path) as made:
        return made


@pytest.fixture
def clew(tmp_path: Path, remote: Remote) -> Project:
    """Three executions with 24 MB each, of which a third is shared."""
    clew = project_with_remote(tmp_path / "here", remote)
    write_random_file(clew, "same", 8 << 20)
    for number in (1, 2, 3):
        write_random_file(clew, "own", 16 << 20, number + 1)
        clew.shell("cat same own > /dev/null", "--name", f"n{number}")
    return clew


def count(clew: Project, everything: dict[str, object]) -> int:
    """What is known is known entirely; how many executions that are."""
    found, _ = verified_executions(clew)
    assert found.items() <= everything.items()
    return len(found)


def test_a_push_is_killed_at_any_moment(tmp_path: Path, clew: Project, remote: Remote) -> None:
    everything = executions_by_uid(clew)
    chance = random.Random(1)
    for turn in range(5):
        pushing = clew.start("push", remote.url)
        time.sleep(chance.uniform(0.2, 1.5))  # the moment of the kill is what is being varied
        kill(pushing)
        other = project_with_remote(tmp_path / f"there{turn}", remote)
        if (remote.path / "format").exists():
            other("pull", remote.url)
        count(other, everything)
        assert count(clew, everything) == 3
    clew("push", remote.url)
    other = project_with_remote(tmp_path / "last", remote)
    other("pull", remote.url)
    assert count(other, everything) == 3
    assert clew.json("gc", "--yes")["files"] == 0


def test_a_pull_is_killed_at_any_moment(tmp_path: Path, clew: Project, remote: Remote) -> None:
    everything = executions_by_uid(clew)
    clew("push", remote.url)
    chance = random.Random(2)
    other = project_with_remote(tmp_path / "there", remote)
    before = 0
    there = remote.objects()
    for _ in range(6):
        pulling = other.start("pull", remote.url)
        time.sleep(chance.uniform(0.2, 1.2))  # the moment of the kill is what is being varied
        kill(pulling)
        after = count(other, everything)
        assert after >= before
        before = after
        if chance.random() < 0.5:
            other("gc", "--yes")
            assert count(other, everything) == after
    other("pull", remote.url)
    assert count(other, everything) == 3
    assert [e["id"] for e in other.json("list")[::-1]] == ["e1", "e2", "e3"]
    assert other.json("gc", "--yes")["files"] >= 0
    assert count(other, everything) == 3
    assert remote.objects() == there


def test_a_killed_pull_resumes(tmp_path: Path, clew: Project, remote: Remote) -> None:
    clew("push", remote.url)
    other = project_with_remote(tmp_path / "there", remote)
    packs = other.folder / ".clew" / "store" / "packs"
    pulling = other.start("pull", remote.url)
    wait_until(
        "two packs", lambda: len(list(packs.glob("*.pack"))) > 1
    )  # the last may not count yet
    kill(pulling)
    arrived = min(packs.glob("*.pack"), key=lambda path: path.stat().st_mtime_ns).stat().st_size
    fetched = other.json("pull", remote.url)["bytes"]
    assert fetched < remote.size() - arrived * 0.9
    assert count(other, executions_by_uid(clew)) == 3


def test_gc_during_a_pull(tmp_path: Path, clew: Project, remote: Remote) -> None:
    """What has arrived is named by nobody yet."""
    clew("push", remote.url)
    other = project_with_remote(tmp_path / "there", remote)
    packs = other.folder / ".clew" / "store" / "packs"
    pulling = other.start("pull", remote.url)
    wait_until(
        "a pack", lambda: any(path.stat().st_size > 8 << 20 for path in packs.glob("*.pack"))
    )
    pulling.send_signal(signal.SIGSTOP)
    arrived = set(packs.glob("*.pack"))
    sweeping = other.start("gc", "--yes")
    pulling.send_signal(signal.SIGCONT)  # it may hold the gate
    sweeping.communicate()
    assert arrived <= set(packs.glob("*.pack"))
    _, said = pulling.communicate()
    assert pulling.returncode == 0, said
    assert count(other, executions_by_uid(clew)) == 3


def test_gc_during_a_push(tmp_path: Path, clew: Project, remote: Remote) -> None:
    """The execution is forgotten while it is pushed: its bytes stay as long as they are needed."""
    everything = executions_by_uid(clew)
    pushing = clew.start("push", remote.url, "n2")
    wait_for_packs(remote, 1)
    pushing.send_signal(signal.SIGSTOP)
    before = sum(path.stat().st_size for path in (clew.folder / ".clew").rglob("*.pack"))
    with clew.opened() as opened:
        opened.remove(["n2"])
    sweeping = clew.start("gc", "--yes")
    pushing.send_signal(signal.SIGCONT)  # it may hold the gate
    _, said = pushing.communicate()
    sweeping.communicate()
    assert "Traceback" not in said
    assert pushing.returncode in (0, 5), said  # 5: forgotten before all of it was told
    other = project_with_remote(tmp_path / "there", remote)
    other("pull", remote.url)
    assert count(other, everything) == (1 if pushing.returncode == 0 else 0)
    clew("gc", "--yes")
    after = sum(path.stat().st_size for path in (clew.folder / ".clew").rglob("*.pack"))
    assert after < before - (14 << 20)

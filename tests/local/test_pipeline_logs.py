"""The logs of running tasks, read from another process."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import HERE
from tests.wait import wait_until

import clew
from clew.documents.pipelines.runs import LogPart
from clew.errors import NotFound

TALK, SHELL = "r1/condition-1/talk", "r1/condition-2/shell"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where tasks leave marks, and beside which they find those that let them go on."""
    made = tmp_path / "marks"
    made.mkdir()
    return made


@contextmanager
def running(project: Project, folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*CLEW, "pipeline", "run", HERE / "talking.py", "--on-host", *words]
    command += ["-p", f"folder={folder}"]
    with subprocess.Popen(
        command, cwd=project.folder, env=project.environment, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def following(project: Project, task: str) -> subprocess.Popen[bytes]:
    words = [*CLEW, "pipeline", "logs", "-f", task]
    return subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stdout=subprocess.PIPE
    )


@pytest.fixture
def opened(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[clew.Project]:
    for name in ("CLEW_GRAPH", "XDG_STATE_HOME"):
        if name in project.environment:
            monkeypatch.setenv(name, project.environment[name])
    with clew.open(project.folder) as found:
        yield found


def so_far(opened: clew.Project, task: str) -> bytes:
    try:
        return opened.pipelines.read_log(task).data
    except NotFound:  # the run has not begun
        return b""


def is_recorded(opened: clew.Project) -> bool:
    try:
        return opened.pipelines.task("r1/talk").state == "running"
    except NotFound:
        return False


def all_said(opened: clew.Project, task: str) -> bytes:
    """What somebody hears who asks again and again, until there is no more."""
    heard, attempt = b"", ""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        said = opened.pipelines.read_log(task, len(heard))
        if said.attempt not in ("", attempt):
            assert attempt == ""  # it is tried once
            attempt = said.attempt
        heard += said.data
        if said.complete:
            return heard
    raise AssertionError(heard[-100:])


def test_the_log_of_a_running_task(project: Project, opened: clew.Project, folder: Path) -> None:
    project.environment["TALK_TOKEN"] = "very-secret-indeed"
    with running(project, folder, "-p", "kind=python") as process:
        wait_until("what the task prints", lambda: b"attempt 1" in so_far(opened, TALK))
        part = opened.pipelines.read_log(TALK)
        data, over, attempt = part.data, part.complete, part.attempt
        assert not over
        assert len(attempt) == 32
        assert b"knows" in data
        assert b"very-secret" not in data
        wait_until("the record of its start, with its short name", lambda: is_recorded(opened))
        assert project.command("pipeline", "logs", "r1/talk").stdout == data
        end = opened.pipelines.read_log(TALK, len(data))
        assert (end.data, end.complete) == (b"", False)
        with following(project, "r1/talk") as follower:
            assert follower.stdout is not None
            first = follower.stdout.read(len(data))
            assert first == data
            Path(f"{folder}.go-1").touch()
            followed = first + follower.stdout.read()
        assert follower.returncode == 0
        process.communicate(timeout=60)
        assert process.returncode == 0
    stored = b"".join(opened.pipelines.logs(TALK))
    assert followed == stored
    assert b"\nline 59999\n" in stored
    assert len(stored) > 2 << 18  # more than one piece holds
    piece = opened.pipelines.read_log(TALK)
    assert (len(piece.data), piece.complete, piece.attempt) == (1 << 18, False, attempt)
    assert all_said(opened, TALK) == stored


def test_the_log_of_the_last_attempt(project: Project, opened: clew.Project, folder: Path) -> None:
    with running(project, folder, "-p", "kind=python", "-p", "tries=2") as process:
        wait_until("what the task prints", lambda: b"attempt 1" in so_far(opened, TALK))
        first = opened.pipelines.read_log(TALK).attempt
        Path(f"{folder}.go-1").touch()
        wait_until("what the task prints", lambda: b"attempt 2" in so_far(opened, TALK))
        second = opened.pipelines.read_log(TALK)
        assert second.attempt != first
        assert b"attempt 1" not in second.data
        Path(f"{folder}.go-2").touch()
        process.communicate(timeout=60)
    last = opened.pipelines.read_log(TALK)
    assert last.attempt == second.attempt
    assert last.data.startswith(second.data)
    assert len(opened.pipelines.task(TALK).attempts) == 2


def test_the_log_of_a_command(project: Project, opened: clew.Project, folder: Path) -> None:
    with running(project, folder, "-p", "kind=shell") as process:
        wait_until("what the task prints", lambda: so_far(opened, SHELL) == b"started\n")
        with following(project, SHELL) as follower:
            Path(f"{folder}.go-1").touch()
            heard, _ = follower.communicate(timeout=60)
        process.communicate(timeout=60)
    assert heard == b"started\ndone\n"
    assert all_said(opened, SHELL) == b"started\ndone\n"


def test_the_log_is_complete_at_the_end(
    project: Project, opened: clew.Project, folder: Path
) -> None:
    """Whoever asks all the time hears each task whole, also in the moments around its end."""
    names = [f"r1/condition-3/for-loop-5/{number}/brief" for number in range(6)]
    with running(project, folder, "-p", "kind=brief", "--jobs", "1") as process:
        for number, name in enumerate(names):
            wait_until("what the task prints", lambda name=name: name in _known(opened))  # type: ignore[misc]
            assert f"word {'abcdef'[number]}\n".encode() in all_said(opened, name)
        process.communicate(timeout=60)
    for name in names:
        assert b"".join(opened.pipelines.logs(name)) == opened.pipelines.read_log(name).data


def test_the_log_of_a_killed_run(project: Project, opened: clew.Project, folder: Path) -> None:
    with running(project, folder, "-p", "kind=python") as process:
        wait_until("what the task prints", lambda: b"attempt 1" in so_far(opened, TALK))
        process.kill()
        process.wait()
    said = opened.pipelines.read_log(TALK)
    assert b"attempt 1" in said.data
    assert said.complete
    assert b"".join(opened.pipelines.logs(TALK, follow=True)) == said.data


def test_a_task_that_never_ran(project: Project, opened: clew.Project, folder: Path) -> None:
    with running(project, folder, "-p", "kind=none") as process:
        process.communicate(timeout=60)
    (skipped, *_) = opened.pipelines.show("r1").tasks
    nothing = LogPart(data=b"", complete=True, attempt="")
    assert opened.pipelines.read_log(skipped.id) == nothing
    refused = project.command("pipeline", "logs", "--follow", skipped.id)
    assert refused.returncode == 5
    assert b"the condition does not hold" in refused.stderr


def _known(opened: clew.Project) -> set[str]:
    try:
        return {one.id for one in opened.pipelines.show("r1").tasks}
    except NotFound:
        return set()

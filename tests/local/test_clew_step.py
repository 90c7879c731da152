"""clew-step, which runs the command of a task in a Pod: with real processes, without a Pod."""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.wait import wait_until

from clew.witness.tracer_binary import DIRECTORY


@pytest.fixture(params=["traced", "untraced"])
def shared(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The directory of both containers, with clew-step in it, and perhaps the tracer."""
    target = tmp_path / "bin" / "clew-step"
    subprocess.run([DIRECTORY / "clew-step", "--install", target], check=True)
    assert target.read_bytes() == (DIRECTORY / "clew-step").read_bytes()
    assert sorted(os.listdir(tmp_path / "bin")) == ["clew-step"]
    if request.param == "traced":
        (tmp_path / "trace").mkdir()
        for name in ("clew-trace", "libclew-inject.so"):
            if (DIRECTORY / name).exists():
                shutil.copy(DIRECTORY / name, tmp_path / "bin")
    return tmp_path


class Step:
    def __init__(self, shared: Path, *command: str) -> None:
        self.shared = shared
        self.process = subprocess.Popen(
            [shared / "bin" / "clew-step", "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def make_ready(self) -> None:
        (self.shared / "ready").touch()

    def end(self) -> tuple[int, str]:
        """Its exit status, and what the file says."""
        status = self.process.wait(timeout=60)
        return status, (self.shared / "status").read_text()

    @property
    def runs(self) -> bool:
        """Whether it holds the lock, as the other container finds out."""
        with (self.shared / "lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@pytest.fixture
def steps(shared: Path) -> Iterator[list[Step]]:
    """Started by a test; none outlives it."""
    started: list[Step] = []
    yield started
    for one in started:
        one.process.kill()
        one.process.wait()
        assert one.process.stdout is not None
        one.process.stdout.close()


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["/no/such/program"], 127),
        (["/"], 126),
    ],
)
def test_the_status_of_the_command(
    shared: Path, steps: list[Step], command: list[str], status: int
) -> None:
    steps.append(step := Step(shared, *command))
    step.make_ready()
    assert step.end() == (status, f"{status}\n")
    assert not step.runs
    assert sorted(set(os.listdir(shared)) - {"trace"}) == ["bin", "lock", "ready", "status"]
    if is_traced(shared):
        assert os.listdir(shared / "trace") == ["records"]


def test_it_waits_until_the_inputs_are_there(shared: Path, steps: list[Step]) -> None:
    steps.append(step := Step(shared, "cat", str(shared / "input")))
    wait_until("it waits", (shared / "lock").exists)
    assert step.runs
    (shared / "input").write_text("here")
    step.make_ready()
    assert step.end() == (0, "0\n")
    assert step.process.stdout is not None
    assert step.process.stdout.read() == "here"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_cancelled_while_it_waits(shared: Path, steps: list[Step], number: int) -> None:
    steps.append(step := Step(shared, "touch", str(shared / "ran")))
    wait_until("it waits", (shared / "lock").exists)
    step.process.send_signal(signal.SIGWINCH)  # no reason to end
    step.process.send_signal(number)
    assert step.end() == (128 + number, f"{128 + number}\n")
    assert not (shared / "ran").exists()


def test_signals_reach_the_command(shared: Path, steps: list[Step]) -> None:
    script = "trap 'exit 7' USR1; echo >started; while :; do sleep 0.01; done"
    steps.append(step := Step(shared, "sh", "-c", f"cd {shared}; {script}"))
    step.make_ready()
    wait_until("it runs", (shared / "started").exists)
    step.process.send_signal(signal.SIGUSR1)
    assert step.end() == (7, "7\n")


def test_the_command_has_the_usual_signals(shared: Path, steps: list[Step]) -> None:
    """clew-step blocks all of them for itself."""
    steps.append(step := Step(shared, "grep", "-E", "SigBlk|SigIgn", "/proc/self/status"))
    step.make_ready()
    assert step.end()[0] == 0
    assert step.process.stdout is not None
    mine = subprocess.run(
        ["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"], capture_output=True, text=True
    )
    assert step.process.stdout.read() == mine.stdout


def test_orphans_are_reaped(shared: Path, steps: list[Step]) -> None:
    script = f"(sh -c 'echo $$ >{shared}/orphan' &) ; cat {shared}/pipe"
    os.mkfifo(shared / "pipe")
    steps.append(step := Step(shared, "sh", "-c", script))
    step.make_ready()
    orphan = wait_until(
        "an orphan", lambda: (shared / "orphan").exists() and (shared / "orphan").read_text()
    )
    wait_until("it is reaped", lambda: not Path(f"/proc/{orphan.strip()}").exists())
    assert step.runs  # the end of an orphan is not that of the command
    (shared / "pipe").write_text("")
    assert step.end() == (0, "0\n")


def test_what_outlives_the_command_ends_with_it(shared: Path, steps: list[Step]) -> None:
    """The container ends with its first process."""
    script = f"sleep 600 & echo $! >{shared}/pid"
    steps.append(step := Step(shared, "sh", "-c", script))
    step.make_ready()
    assert step.end() == (0, "0\n")
    pid = (shared / "pid").read_text().strip()
    if is_traced(shared):
        wait_until("it is killed", lambda: _is_gone(pid))
    else:  # here there is no container
        os.kill(int(pid), signal.SIGKILL)


def test_a_tracer_that_does_not_work_here(shared: Path, steps: list[Step]) -> None:
    """As where ptrace is forbidden: the command runs without it."""
    if not is_traced(shared):
        return
    tracer = shared / "bin" / "clew-trace"
    tracer.write_text("#!/bin/sh\necho ptrace is not permitted >&2; exit 125\n")
    steps.append(step := Step(shared, "true"))
    step.make_ready()
    assert step.end() == (0, "0\n")
    assert os.listdir(shared / "trace") == ["why-not"]
    assert (shared / "trace" / "why-not").read_text() == "ptrace is not permitted\n"


def test_it_is_killed(shared: Path, steps: list[Step]) -> None:
    """As when the memory of the container is used up: the lock is free, there is no status."""
    script = f"echo $$ >{shared}/pid; exec sleep 600"
    steps.append(step := Step(shared, "sh", "-c", script))
    step.make_ready()
    pid = int(wait_until("it runs", lambda: _read(shared / "pid")))
    try:
        assert step.runs
        step.process.kill()
        step.process.wait()
        assert not step.runs  # although the command, which is no part of this container, runs on
        assert not (shared / "status").exists()
    finally:
        with suppress(ProcessLookupError):  # the tracer ended it
            os.kill(pid, signal.SIGKILL)


def test_it_says_what_it_cannot_do(shared: Path) -> None:
    ran = subprocess.run([DIRECTORY / "clew-step"], capture_output=True, text=True)
    assert ran.returncode == 125
    ran = subprocess.run(
        [DIRECTORY / "clew-step", "--install", "/proc/no/clew-step"], capture_output=True, text=True
    )
    assert ran.returncode == 125
    assert "clew-step: /proc/no: " in ran.stderr


def is_traced(shared: Path) -> bool:
    return (shared / "trace").is_dir()


def _is_gone(pid: str) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""

"""One process: its output, its end, and the end of all its descendants."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wait import wait_until

from clew.workloads.local.processes.child_process import ChildProcess
from clew.workloads.local.processes.orphans import VARIABLE, end_orphans
from clew.workloads.local.processes.process_log import ProcessLog

SPAWN = """
import os, sys
# A program in a session of its own, whose parent has ended: as a job that was started with nohup.
started, starting = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("descendant", os.getpid(), flush=True)
        os.execvp("sleep", ["sleep", "600"])
    os._exit(0)
os.close(starting)
os.read(started, 1)  # ends when the descendant has printed, and is another program
os.wait()
print("ready", flush=True)
{then}
"""
WAIT = "import signal; signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


class Started:
    def __init__(self, folder: Path, code: str, **variables: str) -> None:
        self.log = ProcessLog(folder / "log")
        self.process = ChildProcess(
            [sys.executable, "-c", code],
            environment={**os.environ, **variables},
            directory=folder,
            log=self.log,
        )

    def text(self) -> str:
        self.process.read_output()
        return self.log.read().decode()

    def descendant(self) -> int:
        def is_ready() -> bool:
            words = self.text().split()
            return {"ready", "descendant"} <= set(words) and words[-1] != "descendant"

        wait_until("it is ready", is_ready)
        return int(self.text().split("descendant ")[1].split()[0])

    def end(self) -> int:
        """Wait for its end, and return its status."""
        while True:
            select.select([self.process.handle], [], [], 0.05)
            self.process.read_output()
            if (status := self.process.poll()) is not None:
                return status


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_orphans("test")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_output_and_status(folder: Path) -> None:
    started = Started(
        folder, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    )
    assert started.end() == 3
    started.process.close()
    assert set(started.log.read().split()) == {b"out", b"err"}
    assert b"out" in started.process.last_output


def test_a_signal_is_its_status(folder: Path) -> None:
    started = Started(folder, "import os; os.kill(os.getpid(), 9)")
    assert started.end() == -signal.SIGKILL
    started.process.close()


def test_a_missing_program_says_so(folder: Path) -> None:
    process = ChildProcess(
        ["/nonexistent/python"], environment={}, directory=folder, log=ProcessLog(folder / "log")
    )
    wait_until("its end", lambda: process.poll() is not None)
    assert process.poll() == 127
    process.close()
    assert b"/nonexistent/python cannot be started" in process.last_output


@pytest.mark.parametrize("then", [WAIT, "sys.exit(0)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_descendants_end_with_the_program(folder: Path, then: str) -> None:
    started = Started(folder, SPAWN.format(then=then))
    descendant = started.descendant()
    if then == WAIT:
        assert is_running(descendant)
        started.process.terminate()
    started.end()
    assert not is_running(descendant)
    started.process.close()


def test_a_program_that_does_not_end_is_killed(folder: Path) -> None:
    started = Started(folder, STUBBORN + SPAWN.format(then=WAIT))
    descendant = started.descendant()
    started.process.terminate()
    started.process.kill()
    assert started.end() == -signal.SIGKILL
    assert not is_running(descendant)
    started.process.close()


def test_everything_ends_with_the_thread_that_started_it(folder: Path) -> None:
    made: list[Started] = []
    over = threading.Event()

    def run() -> None:
        made.append(Started(folder, SPAWN.format(then=WAIT)))
        over.wait()

    thread = threading.Thread(target=run)
    thread.start()
    started = wait_until("its start", lambda: made and made[0])
    descendant = started.descendant()
    over.set()
    thread.join()
    started.end()
    assert not is_running(descendant)
    started.process.close()


def test_what_is_left_of_a_killed_keeper_is_found(folder: Path) -> None:
    """Nobody looks after the descendants then; a variable of their environment tells whose they
    are."""
    started = Started(folder, STUBBORN + SPAWN.format(then=WAIT), **{VARIABLE: "test/one"})
    descendant = started.descendant()
    os.kill(started.process.pid, signal.SIGKILL)
    started.end()
    started.process.close()
    assert is_running(descendant)
    assert end_orphans("other") == 0
    assert end_orphans("tes") == 0, "a name that only begins alike is another one"
    assert end_orphans("test") >= 1
    wait_until("its end", lambda: not is_running(descendant))


def test_a_server_inside_a_notebook_does_not_end_itself(folder: Path) -> None:
    code = "from clew.workloads.local.processes.orphans import end_orphans; end_orphans('test')"
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}; print('alive')"],
        env={**os.environ, VARIABLE: "test/one"},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert ran.stdout == b"alive\n"


def test_descriptors_are_released(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        started = Started(folder, "pass")
        started.end()
        started.process.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_one_that_prints_without_end_keeps_nobody_waiting(folder: Path) -> None:
    started = Started(folder, "while True: print('x' * 1000)")
    wait_until("some output", lambda: "x" in started.text())
    assert started.process.read_output()
    started.process.terminate()
    started.end()
    started.process.close()
    assert len(started.log.read()) <= 2 * (4 << 20) + (64 << 10)

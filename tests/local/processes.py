"""Projects whose processes can be found and killed, and checks after a crash."""

import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import forkserver
from tests.driver import Project, Word
from tests.wait import wait_until


class TrackedProject(Project):
    """A project whose processes, clew itself and all below, carry a mark in their environment."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.mark = f"TEST_MARK={folder}"
        self.started: list[subprocess.Popen[Any]] = []
        super().__init__(folder, TEST_MARK=str(folder), **environment)

    def live_processes(self) -> list[int]:
        """The pids of all live processes with the mark."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    environment = Path(f"/proc/{entry}/environ").read_bytes()
                except OSError:
                    continue
                if os.fsencode(self.mark) in environment.split(b"\0"):
                    found.append(int(entry))
        return found

    def start(
        self, *words: Word, popen: Any = subprocess.Popen, **more: Any
    ) -> subprocess.Popen[Any]:
        """Start it as a process that can be found: a fork has the fork server's environment."""
        process = super().start(*words, popen=popen, **more)
        self.started.append(process)
        return process

    def __call__(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run it to its end, so by a fork: it need not be found."""
        return super().__call__(*words, **{"popen": forkserver.Popen, **more})

    def stop(self) -> None:
        """Kill what a failed test left running."""
        for process in self.started:
            if process.poll() is None:
                kill(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def wait_until_ended(self) -> None:
        wait_until("the end of all processes", lambda: not self.live_processes())

    def states(self) -> dict[str, str]:
        with self.opened() as project:
            return {found.id: found.state for found in project.executions()}

    def leftovers(self) -> list[str]:
        """Files that no ended execution may leave in its project."""
        hidden = self.folder / ".clew"
        places = (hidden / "spool", hidden / "store" / "leases")
        return [str(path) for place in places for path in place.iterdir()]

    def assert_intact(self) -> None:
        """Check all content, before and after a garbage collection."""
        with self.opened() as project:
            assert project.fsck().problems == ()
            project.gc()
            assert project.fsck().problems == ()
            assert project.gc().files == 0


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@contextmanager
def mounted(place: Path, *words: str) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *words, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def children(pid: int) -> list[int]:
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


def tracer_of(process: subprocess.Popen[str]) -> int:
    """The tracer that a running `clew exec` started, once it is there."""
    found: list[int] = []

    def there() -> bool:
        for child in children(process.pid):
            name = Path(f"/proc/{child}/comm")
            if name.exists() and name.read_text().strip() == "clew-trace":
                found.append(child)
        return bool(found)

    wait_until("the tracer", there)
    return found[0]


def kill(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def is_private(spool: Path) -> bool:
    """Whether only the owner can read the spool."""
    folders = list(spool.iterdir())
    traces = spool.glob("*/trace")
    closed = all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folders)
    return closed and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in traces)


def wait_for_trace(clew: Project, text: bytes) -> None:
    """Wait until the trace in the spool contains `text`; it is written every tenth of a second."""
    spool = clew.folder / ".clew" / "spool"
    wait_until(
        f"{text!r} in the trace", lambda: any(text in t.read_bytes() for t in spool.glob("*/trace"))
    )


def assert_recording_refused(clew: TrackedProject, *, said: str) -> None:
    """Assert that `exec` refuses to run, with this reason in its text and JSON output."""
    marker = Path(f"{clew.folder}-it-ran")
    words = ("--", "touch", str(marker))
    plain = clew("exec", *words, status=125).stderr
    assert plain.startswith("error: cannot record")
    assert said in plain
    assert "\nhint: " in plain
    assert "Traceback" not in plain
    told = json.loads(clew("exec", "--json", *words, status=125).stderr.splitlines()[-1])["error"]
    assert told["code"] == "recording-failed"
    assert said in told["message"]
    assert told["hint"]
    assert not marker.exists()


def start_paused(clew: TrackedProject, line: str) -> subprocess.Popen[str]:
    """Record a command that has started and waits for a line of input."""
    process = clew.start(
        "exec", "--", "sh", "-c", f"cat data > copy; echo ready; read word; {line}"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish_paused(process: subprocess.Popen[str], *, status: int) -> str:
    """Let the command continue; return its stderr."""
    _, said = process.communicate("go\n")
    assert process.returncode == status, said
    assert "Traceback" not in said
    return said

"""What tests of crashes and bad luck share: who is still alive, what lies about, is all well."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project, Word

PATIENCE = 30.0
"""How long to wait for what must come; only a failing test waits that long."""


def await_(what: str, ready: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < until, f"still waiting: {what}"
        time.sleep(0.005)


class Marked(Project):
    """A project whose processes, clew itself and all below, carry a mark in their environment."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.mark = f"MARK_OF_THIS_TEST={folder}"
        self.started: list[subprocess.Popen[Any]] = []
        super().__init__(folder, MARK_OF_THIS_TEST=str(folder), **environment)

    def alive(self) -> list[int]:
        """Every process that carries the mark, and is not dead already."""
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

    def start(self, *words: Word, **more: Any) -> subprocess.Popen[Any]:
        # A fork's environment in /proc is that of the fork server.
        process = super().start(*words, popen=subprocess.Popen, **more)
        self.started.append(process)
        return process

    def stop(self) -> None:
        """What a failed test left running."""
        for process in self.started:
            if process.poll() is None:
                kill(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def await_silence(self) -> None:
        await_("the end of all processes", lambda: not self.alive())

    def states(self) -> dict[str, str]:
        with self.opened() as project:
            return {found.id: found.state for found in project.executions()}

    def leftovers(self) -> list[str]:
        """What no execution that has ended may leave in its project."""
        hidden = self.folder / ".clew"
        places = (hidden / "spool", hidden / "store" / "leases")
        return [str(path) for place in places for path in place.iterdir()]

    def is_well(self) -> None:
        """Every byte is what it says, and stays so when garbage is collected."""
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

    await_("the tracer", there)
    return found[0]


def kill(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def closed_to_others(spool: Path) -> bool:
    """Whether what waits to be told is its owner's alone."""
    folders = list(spool.iterdir())
    traces = spool.glob("*/trace")
    closed = all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in folders)
    return closed and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in traces)


def await_written(clew: Project, text: bytes) -> None:
    """Until the trace in the spool speaks of `text`: it is written every tenth of a second."""
    spool = clew.folder / ".clew" / "spool"
    await_(
        f"{text!r} in the trace", lambda: any(text in t.read_bytes() for t in spool.glob("*/trace"))
    )


def refused(clew: Marked, *, said: str) -> None:
    """`exec` says why it cannot record, as a person and as a program read it; nothing ran."""
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


def begin(clew: Marked, line: str) -> subprocess.Popen[str]:
    """A command that has begun, said so, and waits for a word."""
    process = clew.start(
        "exec", "--", "sh", "-c", f"cat data > copy; echo ready; read word; {line}"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str], *, status: int) -> str:
    """Let it go on; what was said on stderr."""
    _, said = process.communicate("go\n")
    assert process.returncode == status, said
    assert "Traceback" not in said
    return said

"""The progress of a run: running tasks below finished ones on a terminal, plain lines elsewhere."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import HERE

_MOVES = re.compile("\x1b\\[(\\d+)A\x1b\\[J")


class Screen:
    """What somebody who sits there sees; at most so many columns wide."""

    def __init__(self, *words: str | Path, project: Project, columns: int) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [*CLEW, "pipeline", "run", *words],
            cwd=project.folder,
            env={**project.environment, "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stderr=slave,
        )
        os.close(slave)
        self.text = ""

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def until(self, wanted: str) -> None:
        """Read until that was shown."""
        while not re.search(wanted, self.text):
            assert self._more(), self.text

    def to_the_end(self) -> int:
        while self._more():
            pass
        return self.process.wait(timeout=60)

    def _more(self) -> bool:
        try:
            read = os.read(self._master, 1 << 16)
        except OSError:  # nobody is left at the other end
            read = b""
        self.text += read.decode()
        return bool(read)

    @property
    def lines(self) -> list[str]:
        """What is there after all that was written and taken back."""
        shown: list[str] = []
        parts = _MOVES.split(self.text.replace("\r\n", "\n"))
        for up, text in zip(["0", *parts[1::2]], parts[::2], strict=True):
            shown = shown[: len(shown) - int(up)]
            shown += text.splitlines()
        return shown


@pytest.mark.parametrize("columns", [100, 0])
def test_a_terminal_shows_running_tasks(project: Project, tmp_path: Path, columns: int) -> None:
    """A terminal that does not know how wide it is has 0 columns."""
    place = tmp_path / "talk"
    place.mkdir()
    words = (HERE / "talking.py", "-p", f"folder={place}", "-p", "kind=python", "-p", "tries=1")
    with Screen(*words, "--on-host", project=project, columns=columns) as screen:
        screen.until(r"  running    condition-1/talk  \d+\.\d s\r?\n  1 running, 2 skipped\r?\n")
        Path(f"{place}.go-1").touch()
        assert screen.to_the_end() == 0
        lines = screen.lines
    assert not any("running" in line for line in lines), lines
    over = [line for line in lines if line.startswith("  succeeded  condition-1/talk in ")]
    assert len(over) == 1
    assert re.search(r"\(e\d+\): it never ran before", over[0])
    assert lines[-1].startswith("clew: r1 succeeded in ")


def test_a_terminal_shows_the_source_of_a_reused_task(project: Project, tmp_path: Path) -> None:
    words = (HERE / "talking.py", "-p", f"folder={tmp_path}", "-p", "kind=brief", "--on-host")
    assert project.command("pipeline", "run", *words).returncode == 0
    with Screen(*words, project=project, columns=100) as screen:
        assert screen.to_the_end() == 0
        reused = [line for line in screen.lines if line.startswith("  reused ")]
    assert len(reused) == 6
    assert all(re.search(r": r1/.*/brief: all \d+ facts hold", line) for line in reused)


def test_plain_lines_without_a_terminal(project: Project, tmp_path: Path) -> None:
    words = (HERE / "talking.py", "-p", f"folder={tmp_path}", "-p", "kind=brief", "--on-host")
    said = project.command("pipeline", "run", *words).stderr.decode()
    assert "\x1b" not in said
    for state in ("running", "succeeded"):
        assert len(re.findall(rf"(?m)^  {state:<9}  .*/for-loop-\d/\d/brief", said)) == 6
    assert said.splitlines()[-1].endswith("8 tasks (2 skipped, 6 succeeded)")

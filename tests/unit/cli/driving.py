"""Drives the real command line, as a user would: one process a call, in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests import forkserver
from tests.forkserver import CLEW

EXECUTION = {
    *("id", "uid", "name", "command", "cwd", "agent", "started", "ended", "seconds", "state"),
    *("status", "signal", "kind", "parent", "collection", "made_elsewhere", "signed_by"),
    *("processes", "inputs", "outputs", "bytes", "new_bytes"),
}
"""What the contract promises of an execution."""


class Clew:
    """`clew` in one folder, with an environment that no setting of the machine leaks into."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder / "project"
        self.folder.mkdir(parents=True)
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("CLEW_", "XDG_"))}
        if "XDG_CACHE_HOME" in os.environ:  # what is known of packages is found out once for all
            kept["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        self.environment = {**kept, "XDG_STATE_HOME": str(folder / "state"), "LC_ALL": "C.UTF-8"}
        self.environment["XDG_CONFIG_HOME"] = str(folder / "config")
        self.environment.pop("NO_COLOR", None)
        self.environment |= environment

    def start(
        self, *words: str, popen: Any = forkserver.Popen, **more: Any
    ) -> subprocess.Popen[str]:
        settings: dict[str, Any] = {
            "cwd": self.folder,
            "env": self.environment,
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        started: subprocess.Popen[str] = popen([*CLEW, *words], **{**settings, **more})
        return started

    def __call__(
        self, *words: str, status: int = 0, stdin: str = "", **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; the exit status must be the one expected."""
        process = self.start(*words, **more)
        out, err = process.communicate(stdin)
        ran = subprocess.CompletedProcess(words, process.returncode, out, err)
        assert ran.returncode == status, f"clew {' '.join(words)}: {ran.returncode}\n{out}\n{err}"
        return ran

    def json(self, *words: str, status: int = 0, **more: Any) -> Any:
        """What it prints with --json: one document on stdout and nothing else."""
        return json.loads(self(*words, "--json", status=status, **more).stdout)

    def error(self, *words: str, status: int, **more: Any) -> tuple[str, str, str]:
        """(code, message, hint), which must be the same with --json and without."""
        told = self.json(*words, status=status, **more)["error"]
        plain = self(*words, status=status, **more).stderr
        assert plain.splitlines()[-2:] == [f"error: {told['message']}", f"hint: {told['hint']}"]
        return told["code"], told["message"], told["hint"]

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def shell(self, line: str, *options: str, status: int = 0) -> dict[str, Any]:
        """Record one line of shell; the execution."""
        ran = self("exec", "--json", *options, "--", "sh", "-c", line, status=status)
        execution: dict[str, Any] = json.loads(ran.stderr.splitlines()[-1])
        return execution


def workflow(folder: Path, **environment: str) -> Clew:
    """Two executions: e1 (named `clean`) makes data/clean.csv, e2 makes model.txt of that."""
    clew = Clew(folder, **environment)
    clew("init")
    clew.write("data/raw.csv", "P1,1\nP2,\nP3,3\n")
    clew.shell("grep -v ',$' data/raw.csv > data/clean.csv", "--name", "clean")
    clew.shell("wc -l < data/clean.csv > model.txt")
    return clew

"""The test driver: a project, `clew` commands in it, and what they recorded.

The graph's tables are read here directly: a test of the witness must see every fact, also those
that no command prints (`looked`).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests import forkserver
from tests.forkserver import CLEW

from clew import db, project_directory, settings
from clew.api.local.project import LocalProject
from clew.prov.locators import path_of
from clew.prov.row_keys import unpack_looks

Word = str | bytes | os.PathLike[str]


EXECUTION = {
    *("id", "uid", "name", "command", "cwd", "agent", "started", "ended", "seconds", "state"),
    *("status", "signal", "kind", "parent", "collection", "made_elsewhere", "signed_by"),
    *("processes", "inputs", "outputs", "bytes", "new_bytes"),
}
"""What the contract promises of an execution."""


class Project:
    """A directory with a project, and `clew` there: one process a call.

    No setting of the machine is seen, but for what is known of the installed packages.
    """

    def __init__(self, folder: Path, *, init: bool = True, **environment: str) -> None:
        self.folder = folder / "project"
        self.folder.mkdir(parents=True)
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("CLEW_", "XDG_"))}
        kept.pop("NO_COLOR", None)
        if "XDG_CACHE_HOME" in os.environ:
            kept["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        own = {name: str(folder / name) for name in ("state", "config")}
        self.environment = {
            **kept,
            "XDG_STATE_HOME": own["state"],
            "XDG_CONFIG_HOME": own["config"],
            "LC_ALL": "C.UTF-8",
            **environment,
        }
        if init:
            self("init")

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def command(self, *words: Word, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end, whatever its exit status."""
        given: dict[str, Any] = {"cwd": self.folder, "env": self.environment, "timeout": 300}
        if "stdin" not in more and "input" not in more:
            given["stdin"] = subprocess.DEVNULL
        return forkserver.run([*CLEW, *words], **{"capture_output": True, **given, **more})

    def start(
        self, *words: Word, popen: Any = forkserver.Popen, **more: Any
    ) -> subprocess.Popen[Any]:
        """Start it, with pipes for its streams."""
        given: dict[str, Any] = {"cwd": self.folder, "env": self.environment, "text": True}
        given |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        started: subprocess.Popen[Any] = popen([*CLEW, *words], **{**given, **more})
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

    def opened(self) -> LocalProject:
        """The same project in this process: cheaper, where the command is not the point."""
        chosen = settings.load(self.environment)
        return LocalProject(project_directory.find(self.folder, chosen), chosen)

    def shell(self, line: str, *options: str, status: int = 0) -> dict[str, Any]:
        """Record one line of shell; the execution."""
        ran = self("exec", "--json", *options, "--", "sh", "-c", line, status=status)
        execution: dict[str, Any] = json.loads(ran.stderr.splitlines()[-1])
        return execution

    def sh(self, line: str, **more: Any) -> Recording:
        return self.exec("sh", "-c", line, **more)

    def exec(self, *words: Word, options: Sequence[str] = (), **more: Any) -> Recording:
        """Record a command; whatever its status, the recording must be whole."""
        ran = self.command("exec", "--json", *options, "--", *words, **more)
        return self.recording(ran.returncode, ran.stdout or b"", ran.stderr or b"")

    def start_exec(self, *words: Word, **more: Any) -> subprocess.Popen[bytes]:
        """Begin to record a command, to be met while it runs."""
        return self.start("exec", "--json", "--", *words, text=False, **more)

    def finish_exec(self, running: subprocess.Popen[bytes], data: bytes = b"") -> Recording:
        out, err = running.communicate(data, timeout=120)
        return self.recording(running.returncode, out, err)

    def recording(self, status: int, out: bytes, err: bytes) -> Recording:
        said, _, last = err.rstrip(b"\n").rpartition(b"\n")
        try:
            execution = json.loads(last)
        except ValueError:
            pytest.fail(
                f"clew exec said no JSON (status {status}):\n{err.decode(errors='replace')}"
            )
        assert "error" not in execution, execution
        return Recording(
            self, execution["id"], execution["uid"], status, out, said + b"\n" if said else b""
        )


def workflow(folder: Path, **environment: str) -> Project:
    """Two executions: e1 (named `clean`) makes data/clean.csv, e2 makes model.txt of that."""
    clew = Project(folder, **environment)
    clew.write("data/raw.csv", "P1,1\nP2,\nP3,3\n")
    clew.shell("grep -v ',$' data/raw.csv > data/clean.csv", "--name", "clean")
    clew.shell("wc -l < data/clean.csv > model.txt")
    return clew


@dataclass(frozen=True)
class Fact:
    """One edge between a process and a version: `who` is the process's program."""

    who: str
    how: str
    ordinal: int
    made: bool


@dataclass(frozen=True)
class Look:
    """One question of a process: its number in the execution, its program, and the answer."""

    process: int
    who: str
    kind: str
    path: bytes | None
    answer: str


@dataclass
class Recording:
    """What was recorded of one execution."""

    project: Project
    id: str
    uid: str
    status: int
    out: bytes
    err: bytes

    @cached_property
    def show(self) -> dict[str, Any]:
        ran = self.project.command("show", self.id, "--detail", "--json")
        assert ran.returncode == 0, ran.stderr
        document: dict[str, Any] = json.loads(ran.stdout)
        return document

    @property
    def gaps(self) -> list[dict[str, Any]]:
        gaps: list[dict[str, Any]] = self.show["gaps"]
        return gaps

    @cached_property
    def files(self) -> dict[str, dict[str, Any]]:
        return {file["path"]: file for file in self.show["files"]}

    def file(self, name: Word) -> dict[str, Any]:
        path = os.path.join(self.project.folder, os.fsdecode(name))
        assert path in self.files, f"{path} is not among {sorted(self._own())}"
        return self.files[path]

    def _own(self) -> set[str]:
        """The paths inside the project's folder."""
        root = f"{self.project.folder}/"
        return {path.removeprefix(root) for path in self.files if path.startswith(root)}

    def roles(self) -> dict[str, str]:
        """The role of each file inside the project's folder, by name."""
        return {name: self.files[f"{self.project.folder}/{name}"]["role"] for name in self._own()}

    def commands(self) -> list[list[str]]:
        return [process["command"] for process in self.show["tree"]]

    def programs(self) -> list[str]:
        """The program of each process, by its own name."""
        return [os.path.basename(command[0]) for command in self.commands()]

    def cat(self, name: Word, version: str = "") -> bytes:
        """The bytes of a version: "" as it was left, "@input", "@2"."""
        path = os.path.join(self.project.folder, os.fsdecode(name))
        ran = self.project.command("cat", f"{self.id}:{path}{version}")
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout

    def kept(self, name: Word, ordinal: int) -> bytes | None:
        """The bytes of a version that was read, or None where a gap says why there are none."""
        path = os.path.join(self.project.folder, os.fsdecode(name))
        ran = self.project.command("cat", f"{self.id}:{path}@{ordinal}")
        if ran.returncode == 0:
            return ran.stdout
        gaps = [gap for gap in self.gaps if gap["what"] == "content" and gap["path"] == path]
        assert gaps, f"{name}@{ordinal} is neither there nor missed: {ran.stderr.decode()}"
        return None

    def stream(self, name: str) -> bytes | None:
        """What was kept of stdin, stdout or stderr; None: nothing."""
        ran = self.project.command("cat", f"{self.id}:{name}")
        return ran.stdout if ran.returncode == 0 else None

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        path = self.project.folder / ".clew" / "graph.db"
        address = self.project.environment.get("CLEW_GRAPH")
        with db.connect(path, address=address) as connection:
            return connection.rows(sql, (self.uid,))

    def _edges(self, table: str, name: Word) -> set[Fact]:
        wanted = os.path.join(os.fsencode(self.project.folder), os.fsencode(name))
        rows = self._rows(
            f"""SELECT s.command, e.how, v.ordinal, v.maker <> v.execution, l.locator FROM {table} e
            JOIN version v ON v.id = e.version JOIN location l ON l.id = v.location
            JOIN started s ON s.id = e.activity JOIN execution x ON x.id = s.execution
            WHERE x.uid = ?"""
        )
        return {
            Fact(_program(command), how, ordinal, bool(made))
            for command, how, ordinal, made, locator in rows
            if path_of(locator) == wanted
        }

    def used(self, name: Word) -> set[Fact]:
        return self._edges("used", name)

    def generated(self, name: Word) -> set[Fact]:
        return self._edges("generated", name)

    def invalidated(self, name: Word) -> set[Fact]:
        return self._edges("invalidated", name)

    def writers(self, name: Word) -> set[str]:
        return {fact.who for fact in self.generated(name)}

    def readers(self, name: Word) -> set[str]:
        return {fact.who for fact in self.used(name)}

    def looks(self) -> list[Look]:
        """All looks of its processes."""
        rows = self._rows(
            """SELECT s.number, s.command, k.kind, k.location, k.answer, k.also FROM looked k
            JOIN started s ON s.id = k.activity
            JOIN execution x ON x.id = s.execution WHERE x.uid = ?"""
        )
        locators: dict[int, str] = dict(
            self._rows(
                """SELECT l.id, l.locator FROM location l
                JOIN execution x ON x.project = l.project WHERE x.uid = ?"""
            )
        )
        return [
            Look(number, _program(command), kind, path_of(locators[location]), answer)
            for number, command, *first, also in rows
            for kind, location, answer in (first, *(unpack_looks(also) if also else ()))
        ]

    def looked(self, name: Word | None = None) -> set[tuple[str, str, str]]:
        """(program, kind, answer) of each question about a path; of all paths when None."""
        wanted = os.path.join(os.fsencode(self.project.folder), os.fsencode(name or ""))
        return {
            (look.who, look.kind, look.answer)
            for look in self.looks()
            if name is None or look.path == wanted
        }

    def informed(self) -> set[tuple[str, str, str]]:
        """(from whom, who learnt, by what)."""
        rows = self._rows(
            """SELECT b.command, s.command, i.via FROM informed i
            JOIN started s ON s.id = i.activity JOIN started b ON b.id = i.source
            JOIN execution x ON x.id = s.execution WHERE x.uid = ?"""
        )
        return {(_program(by), _program(learnt), via) for by, learnt, via in rows}

    def aliases(self) -> set[tuple[str, str]]:
        rows = self._rows(
            """SELECT a.locator, b.locator FROM alias JOIN location a ON a.id = alias.a
            JOIN location b ON b.id = alias.b JOIN execution x ON x.id = alias.execution
            WHERE x.uid = ?"""
        )
        root = os.fsencode(self.project.folder) + b"/"
        return {
            (
                os.fsdecode((path_of(a) or b"").removeprefix(root)),
                os.fsdecode((path_of(b) or b"").removeprefix(root)),
            )
            for a, b in rows
        }


def _program(command: str) -> str:
    words = json.loads(command)
    return os.path.basename(words[0]) if words else ""

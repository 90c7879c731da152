"""Records real commands in a project of their own, and reads back what the graph was told.

The graph's tables are read here directly: a test of the witness must see every fact, also those
that no command prints (`looked`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests import forkserver
from tests.forkserver import CLEW

from clew import db
from clew.prov.locators import path_of

HERE = Path(__file__).resolve().parent
Word = str | bytes | os.PathLike[str]


def compiled(name: str, folder: Path, *flags: str) -> Path:
    """The program `name`.c of this folder, built by gcc; nothing is built twice in one folder."""
    target = folder / f"{name}{''.join(flags)}"
    if not target.exists():
        words = ["gcc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *flags]
        subprocess.run([*words, "-o", target, HERE / f"{name}.c"], check=True)
    return target


def go_program(name: str, folder: Path, *flags: str, cgo: bool = False) -> Path:
    """The program `name`.go of this folder, or a skip that says why there is none."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go compiler here (Debian: golang-go)")
    target = folder / f"{name}{'-cgo' if cgo else ''}"
    if not target.exists():
        environment = {
            **os.environ,
            "CGO_ENABLED": "1" if cgo else "0",
            "GOCACHE": os.environ.get("GOCACHE", "/tmp/clew-go-cache"),
            "GO111MODULE": "off",
            "GOTOOLCHAIN": "local",
        }
        words = [go, "build", *flags, "-o", str(target), str(HERE / f"{name}.go")]
        subprocess.run(words, check=True, env=environment)
    return target


class Project:
    """A folder with a project in it."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder / "project"
        self.folder.mkdir(parents=True)
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("CLEW_", "XDG_"))}
        if "XDG_CACHE_HOME" in os.environ:  # what is known of packages is found out once for all
            kept["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        self.environment = {**kept, "XDG_STATE_HOME": str(folder / "state"), "LC_ALL": "C.UTF-8"}
        self.environment |= environment
        self.command("init")

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def command(self, *words: Word, **more: Any) -> subprocess.CompletedProcess[bytes]:
        settings: dict[str, Any] = {"cwd": self.folder, "env": self.environment}
        if "stdin" not in more and "input" not in more:
            settings["stdin"] = subprocess.DEVNULL
        return forkserver.run(
            [*CLEW, *words], **{"capture_output": True, "timeout": 300, **settings, **more}
        )

    def exec(self, *words: Word, options: Sequence[str] = (), **more: Any) -> Recording:
        """Record a command; whatever its status, the recording must be whole."""
        ran = self.command("exec", "--json", *options, "--", *words, **more)
        return self.recording(ran.returncode, ran.stdout or b"", ran.stderr or b"")

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

    def sh(self, line: str, **more: Any) -> Recording:
        return self.exec("sh", "-c", line, **more)

    def start(self, *words: Word, **more: Any) -> subprocess.Popen[bytes]:
        """Begin to record a command, to be met while it runs."""
        settings: dict[str, Any] = {"cwd": self.folder, "env": self.environment}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return forkserver.Popen(
            [*CLEW, "exec", "--json", "--", *words], **{**pipes, **settings, **more}
        )

    def finish(self, running: subprocess.Popen[bytes], data: bytes = b"") -> Recording:
        out, err = running.communicate(data, timeout=120)
        return self.recording(running.returncode, out, err)


@dataclass(frozen=True)
class Fact:
    """One edge between a process and a version: `who` is the process's program."""

    who: str
    how: str
    ordinal: int
    made: bool


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

    def looked(self, name: Word | None = None) -> set[tuple[str, str, str]]:
        """(program, kind, answer) of each question about a path; of all paths when None."""
        rows = self._rows(
            """SELECT s.command, k.kind, k.answer, l.locator FROM looked k
            JOIN location l ON l.id = k.location JOIN started s ON s.id = k.activity
            JOIN execution x ON x.id = s.execution WHERE x.uid = ?"""
        )
        wanted = (
            None
            if name is None
            else os.path.join(os.fsencode(self.project.folder), os.fsencode(name))
        )
        return {
            (_program(command), kind, answer)
            for command, kind, answer, locator in rows
            if wanted is None or path_of(locator) == wanted
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
